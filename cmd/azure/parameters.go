package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// parameters is the text of a .bicepparam file, or of a template, whose defaults are read in the same way.
type parameters string

// statement finds a parameter's line. Its group is the value: a text on one line, else all up to a line that is empty
// or begins another statement.
func statement(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)(?:^|\n)[ \t]*param[ \t]+` + name + `\b[^=\n]*= *('(?:[^'\\\n]|\\.)*'|.*?) *(?://[^\n]*)?(?:\n[^ \t\]}]|\n*$)`)
}

// get returns a parameter as it is written; empty if it is not.
func (p parameters) get(name string) string {
	if m := statement(name).FindStringSubmatch(string(p)); m != nil {
		return m[1]
	}
	return ""
}

// set returns the file with a parameter.
func (p parameters) set(name, value string) parameters {
	if m := statement(name).FindStringSubmatchIndex(string(p)); m != nil {
		return p[:m[2]] + parameters(value) + p[m[3]:]
	}
	return p + parameters("param "+name+" = "+value+"\n")
}

// text returns a parameter that is a text; empty if it is none.
func (p parameters) text(name string) string {
	quoted := p.get(name)
	if len(quoted) < 2 || quoted[0] != '\'' {
		return ""
	}
	return strings.NewReplacer(`\'`, `'`, `\$`, `$`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// literal writes a value of JSON as Bicep does.
func literal(value any) string {
	var parts []string
	switch v := value.(type) {
	case string:
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, `${`, `\${`).Replace(v) + "'"
	case []any:
		for _, one := range v {
			parts = append(parts, literal(one))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, literal(key)+": "+literal(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, _ := json.Marshal(value) //nolint:errchkjson // a number, true, false or null of JSON
	return string(text)
}

// guarded are the parameters whose change moves the app to other documents, other rows or another mode.
const guarded = "mode leasePrefix sysName cosmosEndpoint cosmosDatabase cosmosContainer leaseContainer partitionKeyPaths " +
	"sqlServer sqlDatabase sqlSchema"

// inUse are the guarded parameters as an app's settings have them. Which container's key a deployment made, they do not
// say.
func inUse(app string, settings map[string]string) map[string]any {
	sql, err := url.Parse(settings["SQL_CONNECTION"])
	if err != nil {
		sql = &url.URL{}
	}
	suffix := app[strings.LastIndex(app, "-")+1:] + "."
	orEmpty := func(address, own string) string { // what the template makes has the app's suffix, and is '' in the file
		if strings.HasPrefix(address, own+suffix) {
			return ""
		}
		return address
	}
	return map[string]any{
		"mode": cmp.Or(settings["MODE"], "live"), "leasePrefix": settings["LEASE_PREFIX"],
		"sysName":        settings["SYS_NAME"],
		"cosmosEndpoint": orEmpty(settings["COSMOS_CONNECTION__accountEndpoint"], "https://cosmos-sqlwriter-"),
		"cosmosDatabase": settings["COSMOS_DATABASE"], "cosmosContainer": settings["COSMOS_CONTAINER"],
		"leaseContainer": settings["LEASE_CONTAINER"], "sqlServer": orEmpty(sql.Host, "sql-sqlwriter-"),
		"sqlDatabase": sql.Query().Get("database"), "sqlSchema": settings["SQL_SCHEMA"],
	}
}

// readable is an error if a guarded parameter has a value that Bicep alone can read, or if the file hides one; and if
// the app would refuse its names, after minutes of deploying.
func (p parameters) readable() error {
	if strings.Contains(string(p), "/*") {
		return errors.New("the parameter file has a comment of the form /* */: make azure reads // alone")
	}
	escaped := regexp.MustCompile(`\\.`)
	plain := regexp.MustCompile(`^('[^'\n]*'|\[(\s*'[^'\n]*'\s*,?)*\s*\])$`)
	for name := range strings.FieldsSeq(guarded) {
		value := escaped.ReplaceAllString(p.get(name), "")
		if value != "" && (!plain.MatchString(value) || strings.Contains(value, "${")) {
			return fmt.Errorf("param %s = %s: write the value itself, because make azure compares it with the app's",
				name, p.get(name))
		}
	}
	name, prefix := p.text("sysName"), p.text("leasePrefix")
	switch {
	case !regexp.MustCompile(`^[\w-]{1,20}$`).MatchString(name):
		return fmt.Errorf("param sysName = '%s': the app takes 1 to 20 letters, digits, - and _", name)
	case !strings.HasPrefix(prefix, name+"-"):
		return fmt.Errorf("param leasePrefix = '%s': the app takes one that begins with %s-", prefix, name)
	}
	return nil
}

// changes lists which guarded parameters differ from those in use. What neither names has the template's default.
func (p parameters) changes(template parameters, used map[string]any) (list []string) {
	plain := strings.NewReplacer(" ", "", "\n", "", ",", "") // a list may have its parts on lines
	for name := range strings.FieldsSeq(guarded) {
		was, want := template.get(name), cmp.Or(p.get(name), template.get(name))
		if value, known := used[name]; known {
			was = literal(value)
		}
		if plain.Replace(was) != plain.Replace(want) {
			list = append(list, fmt.Sprintf("%s: %s becomes %s", name, was, want))
		}
	}
	return list
}
