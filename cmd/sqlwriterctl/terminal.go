package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"sqlwriter/internal/timer"
)

// environment holds the process's inputs and outputs. Tests replace it.
type environment struct {
	lookup func(string) (string, bool)
	// http asks the app and Azure Resource Manager.
	http *http.Client
	// dir is the folder of .local.
	dir            string
	stdin          io.Reader
	stdout, stderr io.Writer
	// asks means that stdin and stderr are a terminal, so that a question can be answered. shows means that stdout is
	// one.
	asks, shows bool
	// zone is the operator's time zone.
	zone *time.Location
	// now is the clock. wait sleeps unless the context ends first.
	now  func() time.Time
	wait func(ctx context.Context, d time.Duration) error
}

func processEnvironment() environment {
	return environment{
		lookup: os.LookupEnv, dir: ".", stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, zone: time.Local,
		now: time.Now, wait: timer.Wait, http: http.DefaultClient,
		asks:  term.IsTerminal(int(os.Stderr.Fd())) && term.IsTerminal(int(os.Stdin.Fd())),
		shows: term.IsTerminal(int(os.Stdout.Fd())),
	}
}

// env returns an environment variable; empty if it is not set.
func (e environment) env(name string) string {
	v, _ := e.lookup(name)
	return v
}

// plain makes a text harmless: characters that move a terminal's cursor, end a line or turn the direction of reading
// are shown as escapes. Texts of documents may have them. Each text that leaves the tool goes through it, but for JSON,
// which writeJSON escapes.
func plain(text string) string {
	if isPlain(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text { // an invalid byte becomes U+FFFD
		if unicode.IsGraphic(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// isPlain reports whether a text has graphic characters only. The marks of reading direction are none.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// formatted formats a line; its arguments are made plain.
func formatted(format string, args []any) string {
	harmless := make([]any, len(args))
	for i, arg := range args {
		harmless[i] = arg
		switch v := reflect.ValueOf(arg); arg := arg.(type) {
		case error:
			harmless[i] = plain(arg.Error())
		case fmt.Stringer:
			harmless[i] = plain(arg.String())
		default:
			if v.Kind() == reflect.String {
				harmless[i] = plain(v.String())
			}
		}
	}
	return fmt.Sprintf(format+"\n", harmless...)
}

// print writes plain text, or a file as it is, to stdout. It ignores a closed output.
func (a *app) print(text string) { _, _ = io.WriteString(a.stdout, text) }

// printf writes a line of the result to stdout.
func (a *app) printf(format string, args ...any) { a.print(formatted(format, args)) }

// notef writes a note to stderr, unless -q asks for none.
func (a *app) notef(format string, args ...any) {
	if !a.Quiet {
		a.tellf(format, args...)
	}
}

// tellf writes a line to stderr.
func (a *app) tellf(format string, args ...any) {
	_, _ = io.WriteString(a.stderr, formatted(format, args))
}

// table writes rows in aligned columns.
func (a *app) table(rows [][]string) error {
	const gap = 2
	w := tabwriter.NewWriter(a.stdout, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, strings.Join(idsOf(row, plain), "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// mayConfirm refuses, before anything is connected, a command that could not ask: no script must wait for an answer.
func (a *app) mayConfirm(yes bool) error {
	if yes || a.asks {
		return nil
	}
	return usagef("this is done after a confirmation only, and there is no terminal to ask on: add --yes")
}

// confirm asks whether to go on. mayConfirm has found that there is a terminal.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	_, _ = fmt.Fprintf(a.stderr, "%s Continue? [y/N] ", plain(question)) // a closed output is no consent
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("no answer could be read: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was done: the answer was not yes")
}
