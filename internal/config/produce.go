package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The marks around the table in docs/settings.md.
const (
	TableBegin = "<!-- settings:begin -->"
	TableEnd   = "<!-- settings:end -->"
)

// hostSettings are the settings of the host and its tools.
func hostSettings() [][2]string {
	return [][2]string{
		{"FUNCTIONS_WORKER_RUNTIME", "custom"},
		{"AzureWebJobsStorage", "UseDevelopmentStorage=true"},
	}
}

// Sample returns local.settings.sample.json.
func Sample() []byte {
	var b strings.Builder
	b.WriteString("{\n  \"IsEncrypted\": false,\n  \"Values\": {\n")
	values := hostSettings()
	for _, s := range Settings() {
		if s.Sample != "" {
			values = append(values, [2]string{s.Name, s.Sample})
		}
	}
	for i, v := range values {
		comma := ","
		if i == len(values)-1 {
			comma = ""
		}
		fmt.Fprintf(&b, "    %s: %s%s\n", quote(v[0]), quote(v[1]), comma)
	}
	b.WriteString("  }\n}\n")
	return []byte(b.String())
}

func quote(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

// Table returns README's table of settings.
func Table() string {
	var b strings.Builder
	b.WriteString("| setting | default | meaning |\n|---|---|---|\n")
	for _, s := range Settings() {
		value := "-"
		switch {
		case s.Default != "":
			value = "`" + s.Default + "`"
		case s.Host:
			value = "must be set (the host reads it too)"
		case s.Required:
			value = "must be set"
		}
		meaning := s.Meaning
		if s.Secret {
			meaning += " (secret)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Name, value, meaning)
	}
	return b.String()
}
