package shared

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"text/template"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/run"
)

//go:embed auditlog/*.sql findings/*.sql reports/*.sql runs/*.sql parts/*.sql
var files embed.FS

// The folders of statements. The files of folder parts are parts of them.
const (
	OfAuditLog = "auditlog"
	OfFindings = "findings"
	OfReports  = "reports"
	OfRuns     = "runs"
)

// Dialect is the SQL syntax in which the engines differ. All engines take named parameters (@id).
type Dialect struct {
	// Prefix is what the name of each table of ours begins with.
	Prefix string
	// Now is the time of the database's clock, in UTC and with milliseconds or finer.
	Now string
	// FromNowFormat is a format for fmt with a number of milliseconds, which may be negative. It makes the time that
	// long after now, with the precision of the columns, so a row written just now is not later than now.
	FromNowFormat string
	// SecondsFormat makes the seconds between two times, a float. DayFormat makes the day of a time as text, such as
	// 2025-12-18.
	SecondsFormat, DayFormat string
	// Top and Limit bound a query to @limit rows. Each engine sets one of them and leaves the other empty.
	Top, Limit string
	// NoIndex, before a column, keeps the engine from using the column's index.
	NoIndex string
	// BinaryCollation follows a text to have it compared byte by byte. It is empty on an engine that always does so.
	BinaryCollation string
	// LockTimeout is how many milliseconds a write waits for a lock. A value other than 0 also makes an error roll
	// back the whole transaction. It is 0 on an engine that takes the limit when it opens the database.
	LockTimeout int64
	// ListOf is the table of a JSON array of arrays. It takes the parameter and the columns in the order of the inner
	// arrays, each with its type on a server ("listed_id varchar(64)").
	ListOf func(parameter string, columns []string) string
	// HashFormat is a format for fmt with an expression of 32 bytes. It makes a hash of the columns' type.
	HashFormat string
	// UpdateByAlias makes an UPDATE by a list name the table in its FROM and the alias as its target.
	UpdateByAlias bool
	// ForceOrder, at the end of a statement, makes the server start with the list and not with the table.
	ForceOrder string
	// AuditProcedure adds an entry to the audit log, where the app may not insert one. It is empty on an engine without
	// logins.
	AuditProcedure string
	// DetailTable is IVCE_DTL. Mapping has its columns, and Quote makes an identifier of a name.
	DetailTable string
	Mapping     *invoice.Mapping
	Quote       func(name string) string
}

// Ago is the time that many milliseconds before now, by the name of a parameter.
func (d Dialect) Ago(parameter string) string { return fmt.Sprintf(d.FromNowFormat, "-@"+parameter) }

// SecondsAgo is the time a number of seconds before now.
func (d Dialect) SecondsAgo(seconds int) string {
	return fmt.Sprintf(d.FromNowFormat, strconv.Itoa(-1000*seconds))
}

// In is the time that many milliseconds after now, by the name of a parameter.
func (d Dialect) In(parameter string) string { return fmt.Sprintf(d.FromNowFormat, "@"+parameter) }

// Seconds is the time between two times, with fractions; NULL if either is NULL.
func (d Dialect) Seconds(from, to string) string { return fmt.Sprintf(d.SecondsFormat, from, to) }

// Day is the day of a time.
func (d Dialect) Day(at string) string { return fmt.Sprintf(d.DayFormat, at) }

// List is the table of a JSON parameter.
func (d Dialect) List(parameter string, columns ...string) string {
	return d.ListOf("@"+parameter, columns)
}

// NestedList is List inside a derived table, for the layout alone.
func (d Dialect) NestedList(parameter string, columns ...string) string {
	return strings.ReplaceAll(d.List(parameter, columns...), "\n", "\n    ")
}

// Update is the start of an UPDATE of a table of ours by a list.
func (d Dialect) Update(table, alias string) string {
	if d.UpdateByAlias {
		return "UPDATE " + alias
	}
	return "UPDATE " + d.Prefix + table + " AS " + alias
}

// JoinTarget joins the updated table to the list, where UpdateByAlias is set.
func (d Dialect) JoinTarget(table, alias string) string {
	if d.UpdateByAlias {
		return "CROSS JOIN " + d.Prefix + table + " AS " + alias + "\n"
	}
	return ""
}

// Hash is a hash of a list, by its place in the parameter @hashes.
func (d Dialect) Hash(place string) string {
	return fmt.Sprintf(d.HashFormat, "SUBSTRING(@hashes, 32 * "+place+" + 1, 32)")
}

// OneHash is a hash that is a parameter by itself.
func (d Dialect) OneHash(parameter string) string { return fmt.Sprintf(d.HashFormat, "@"+parameter) }

// Failures lists the outcomes that failure_count counts, for IN.
func (d Dialect) Failures() string { return quoted(invoice.Unfinished()) }

// Statuses lists all statuses of a batch, for IN. Naming all lets a query about one run use the index that begins
// with the status.
func (d Dialect) Statuses() string { return quoted(run.BatchStatuses()) }

// PeopleCodes lists the codes that are notable at any level, for IN.
func (d Dialect) PeopleCodes() string { return quoted(run.PeopleCodes()) }

// MarkCode is the action of a person's mark, for a literal.
func (d Dialect) MarkCode() string { return run.CodeMarkCommitted }

func quoted[T ~string](words []T) string {
	var list []string
	for _, w := range words {
		list = append(list, "'"+string(w)+"'")
	}
	return strings.Join(list, ", ")
}

// variant is a statement that shares a file with others. Each has a plan of its own.
type variant struct {
	Dialect
	file                                                 string
	ByRun, ByStatus, ByOutcome, ByAction, Notable, Ended bool
}

func variants() map[string]variant {
	return map[string]variant{
		stNotable:              {file: stAudits, Notable: true},
		stNotableOfRun:         {file: stAudits, Notable: true, ByRun: true},
		stAuditsOfRun:          {file: stAudits, ByRun: true},
		stOfAction:             {file: stAudits, ByAction: true},
		stOfActionOfRun:        {file: stAudits, ByAction: true, ByRun: true},
		stBatchesByStatus:      {file: stBatches, ByStatus: true},
		stBatchesOfRun:         {file: stBatches, ByRun: true},
		stBatchesOfRunByStatus: {file: stBatches, ByRun: true, ByStatus: true},
		stItemsByOutcome:       {file: stItems, ByOutcome: true},
		stRunLeaseEnded:        {file: stRunLease, Ended: true},
	}
}

// Texts returns the statements of folders by name: the file's name without .sql, or a variant's. Where the mapping
// lacks a column that a statement needs, the text is a comment that says so.
func Texts(d Dialect, folders ...string) (map[string]string, error) {
	t, err := template.New("").Option("missingkey=error").ParseFS(files, "*/*.sql")
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	all := variants()
	texts := map[string]string{}
	for _, folder := range folders {
		found, err := fs.Glob(files, folder+"/*.sql")
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		for _, f := range found {
			file := strings.TrimSuffix(path.Base(f), ".sql")
			of := map[string]variant{file: {file: file}}
			for name, v := range all {
				if v.file == file {
					of[name] = v
				}
			}
			for name, v := range of {
				var b strings.Builder
				v.Dialect = d
				err := t.ExecuteTemplate(&b, file+".sql", v)
				if missing := (noColumn{}); errors.As(err, &missing) {
					texts[name] = unavailable + missing.Error()
					continue
				}
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				texts[name] = b.String()
			}
		}
	}
	return texts, nil
}

// Engine is a database as the statements use it.
type Engine struct {
	Dialect
	// Name begins the operation of every error, for example "sqlite".
	Name string
	// SysName is the environment. Several environments may share the tables.
	SysName string
	// Write runs the changes. Read runs the queries and sees committed rows only.
	Write, Read *sql.DB
	// Bind makes the parameter of a text.
	Bind func(t ParameterType, text string) any
	// Classify makes a *fault.Error of a driver's error, never of kind document. It returns nil and a *fault.Error
	// unchanged. A duplicate key is contention with the condition OwnWhenAlone.
	Classify func(op string, err error) error
}

// statements prepares the statements of folders without using the database.
func (e Engine) statements(folders ...string) statements {
	texts, err := Texts(e.Dialect, folders...)
	if err != nil {
		panic("shared: " + err.Error()) // the templates and their data are constant
	}
	return statements{engine: e, texts: texts}
}
