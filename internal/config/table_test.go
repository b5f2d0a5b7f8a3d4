package config

import (
	"fmt"
	"strings"
)

// The marks around the table in docs/settings.md.
const (
	TableBegin = "<!-- settings:begin -->"
	TableEnd   = "<!-- settings:end -->"
)

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
