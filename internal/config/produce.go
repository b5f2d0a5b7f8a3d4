package config

import (
	"encoding/json"
	"fmt"
	"strings"
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
