package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// grammar is the tool's grammar.
func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := newParser(&cli{}, environment{stdout: io.Discard, stderr: io.Discard}, func(int) {})
	require.NoError(t, err)
	return parser
}

func TestProducedCommandPage(t *testing.T) {
	const path = "../../docs/cli.md"
	want := commandPage(grammar(t).Model)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o600))
		require.NoError(t, os.Chmod(path, 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "make update rewrites it")
}

// commandPage makes docs/cli.md.
func commandPage(model *kong.Application) string {
	var b strings.Builder
	b.WriteString(`<!-- Produced from the tool's grammar: go test ./cmd/sqlwriterctl -run Produced -update -->
# The operators' tool

` + "`make ctl`" + ` builds bin/sqlwriterctl. Each command has ` + "`--help`" + `. [runbook.md](runbook.md) says when to use which.

`)
	b.WriteString(exitCodes + "\n\n")
	b.WriteString("| command | does |\n|---|---|\n")
	for _, node := range model.Leaves(true) {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", node.Path(), strings.ReplaceAll(node.Path(), " ", "-"), cell(node.Help))
	}
	b.WriteString("\n## Flags of every command\n\n")
	writeFlags(&b, model.Node)
	for _, node := range model.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```\n%s\n```\n", node.Path(), node.Help, strings.Join(examples()[node.Path()], "\n"))
		if len(node.Positional)+len(node.Flags) > 0 {
			b.WriteString("\n")
			writeFlags(&b, node)
		}
	}
	return b.String()
}

func writeFlags(b *strings.Builder, node *kong.Node) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	for _, arg := range node.Positional {
		fmt.Fprintf(b, "| `%s` | %s |\n", arg.Summary(), cell(arg.Help))
	}
	for _, flag := range node.Flags {
		if flag.Hidden || flag.Name == "help" {
			continue
		}
		name := "--" + flag.Name
		if flag.Short != 0 {
			name = "-" + string(flag.Short) + ", " + name
		}
		if !flag.IsBool() {
			name += " " + flag.FormatPlaceHolder()
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, cell(flag.Help))
	}
}
