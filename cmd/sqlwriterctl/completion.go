package main

import (
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *completionCommand) Run(a *app) error {
	script := completionScripts[c.Shell]
	return a.emit(script, []string{c.Shell}, func() error {
		a.print(script + "\n")
		return nil
	})
}

// completeWord is the hidden command that the scripts call with the words behind the tool's name. It is not in the
// grammar, because its arguments are incomplete commands.
const completeWord = "__complete"

// completionScripts ask the tool itself, so that they never are older than it.
//
//nolint:gochecknoglobals // constant
var completionScripts = map[string]string{
	"bash": `# bash completion for sqlwriterctl: source <(sqlwriterctl completion bash)
_sqlwriterctl() {
  local IFS=$'\n'
  local words
  words=$("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sqlwriterctl sqlwriterctl`,
	"zsh": `#compdef sqlwriterctl
# zsh completion for sqlwriterctl: source <(sqlwriterctl completion zsh)
_sqlwriterctl() {
  local -a found
  local line
  for line in "${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" ]] && found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe sqlwriterctl found; else _files; fi
}
compdef _sqlwriterctl sqlwriterctl`,
	"fish": `# fish completion for sqlwriterctl: sqlwriterctl completion fish | source
complete -c sqlwriterctl -f -a '(sqlwriterctl __complete -- (commandline -opc)[2..] (commandline -ct))'
complete -c sqlwriterctl -n '__fish_seen_subcommand_from submit' -F`,
}

// complete prints what may stand in place of the last word, as far as the grammar says it: a word and its meaning a
// line, with a tab between.
func (a *app) complete(typed []string) {
	if len(typed) > 0 && typed[0] == "--" {
		typed = typed[1:]
	}
	if len(typed) == 0 {
		typed = []string{""}
	}
	last := typed[len(typed)-1]
	for _, candidate := range a.candidates(typed[:len(typed)-1], strings.HasPrefix(last, "-")) {
		if strings.HasPrefix(candidate, last) {
			a.print(candidate + "\n")
		}
	}
}

// candidates lists all words that may follow: flags, or commands and values.
func (a *app) candidates(before []string, flags bool) (list []string) {
	node := a.parser.Model.Node
	var open *kong.Flag // it waits for its value
	for _, word := range before {
		switch {
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-"):
			open = openFlag(node, word)
		case child(node, word) != nil:
			node = child(node, word)
		}
	}
	switch {
	case open != nil:
		return valuesOf(open.Value)
	case flags:
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				list = append(list, "--"+flag.Name+"\t"+flag.Help)
			}
		}
		return list
	}
	for _, c := range node.Children {
		list = append(list, c.Name+"\t"+c.Help)
	}
	for _, argument := range node.Positional {
		list = append(list, valuesOf(argument)...)
	}
	return list
}

// openFlag returns the flag of a word that takes its value from the next word; nil for any other.
func openFlag(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if !flag.IsBool() && (word == "--"+flag.Name || (flag.Short != 0 && word == "-"+string(flag.Short))) {
				return flag
			}
		}
	}
	return nil
}

// valuesOf lists the values that the grammar has of a flag or an argument.
func valuesOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return idsOf(value.EnumSlice(), func(one string) string { return one + "\t" })
}
