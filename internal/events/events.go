// Package events is the one way to the handler's log. Each line is an event of the table (table.go), with fields of the
// same names everywhere. docs/events.md is produced from both.
//
// Lines of level debug and info go to stdout, warn and error to stderr. The Functions host takes a line on stdout for
// information and a line on stderr for an error, or for a warning if it has "warn" in it (docs/facts.md F26). ADR 0040
// has the reasons.
package events

import (
	"bytes"
	"context"
	"io"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
)

// New makes the handler's logger. Each line has its time in UTC.
func New(stdout, stderr io.Writer) zerolog.Logger {
	return zerolog.New(streams{stdout, stderr}).Hook(
		zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
			// two streams have no order
			e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
		}))
}

// streams sends each line to the stream that gives it its level at the host.
type streams struct{ stdout, stderr io.Writer }

// Write implements io.Writer.
func (s streams) Write(line []byte) (int, error) { return s.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel implements zerolog.LevelWriter. A warning has "warn" in its level.
func (s streams) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	written, to := line, s.stdout
	switch {
	case level == zerolog.WarnLevel:
		to = s.stderr
	case level > zerolog.WarnLevel && level <= zerolog.PanicLevel:
		written, to = withoutWarn(line), s.stderr
	}
	_, err := to.Write(written)
	return len(line), err
}

// withoutWarn writes the a of each "warn" in a line of JSON as an escape, which means the same text. The host would
// take an error with this word, in an id for example, for a warning. An a behind a w is never part of another escape.
func withoutWarn(line []byte) []byte {
	const word, second = "warn", 1
	if !bytes.Contains(bytes.ToLower(line), []byte(word)) {
		return line
	}
	out := make([]byte, 0, len(line)+len(`\u0061`))
	for i := 0; i < len(line); i++ {
		if end := i + len(word); end <= len(line) && bytes.EqualFold(line[i:end], []byte(word)) {
			out = append(out, line[i])
			out = append(out, map[byte]string{'a': `\u0061`, 'A': `\u0041`}[line[i+second]]...)
			i += second
			continue
		}
		out = append(out, line[i])
	}
	return out
}

// Name identifies an event: the member event of its line.
type Name string

// Log writes events of one piece of work.
type Log struct {
	logger zerolog.Logger
	ids    Fields
}

// idsKey is the key of ids in a context.
type idsKey struct{}

// With gives a context whose events have these ids: Function, Invocation, Run and Batch. An empty one keeps what the
// context has.
func With(ctx context.Context, ids Fields) context.Context {
	return context.WithValue(ctx, idsKey{}, ids.completed(idsOf(ctx)))
}

// For gives the log of the work that ctx belongs to.
func For(ctx context.Context, logger zerolog.Logger) Log { return Log{logger, idsOf(ctx)} }

func idsOf(ctx context.Context) Fields {
	ids, _ := ctx.Value(idsKey{}).(Fields)
	return ids
}

// Write writes one line, if the level of the event is logged.
func (l Log) Write(name Name, f Fields) {
	row, known := rowOf(name)
	if !known {
		row = Row{Name: name, Level: zerolog.ErrorLevel}
	}
	line := l.logger.WithLevel(row.Level)
	if line == nil {
		return
	}
	line = line.Str("event", string(name))
	if told, tells := condition.ToldBy(string(name)); tells {
		f.Condition = told.Code
	}
	if told, known := condition.Of(f.Condition); known {
		f.Severity = told.Severity
	}
	f.completed(l.ids).writeTo(line)
	line.Msg(row.Says)
}

// Panic writes the event of a recovered panic with its stack, and gives its error, of kind internal.
func (l Log) Panic(op string, f Fields, recovered any) *fault.Error {
	err := fault.Panic(op, recovered)
	f = f.Of(err)
	f.Stack = string(debug.Stack())
	l.Write(Panic, f)
	return err
}
