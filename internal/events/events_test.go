package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
)

var update = flag.Bool("update", false, "rewrite docs/events.md")

// hostLevel is what the Functions host takes a line for (docs/facts.md F26).
func hostLevel(stderr bool, line string) zerolog.Level {
	switch {
	case !stderr:
		return zerolog.InfoLevel
	case strings.Contains(strings.ToLower(line), "warn"):
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}

// Every event reaches the host with its own level, whatever its texts are.
func TestTheHostSeesTheLevelOfEachEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(),
			rapid.StringMatching(`(?i)(w|\\|")*(warn|wwarn|WARNING|warnwarn|\\u0061warn|error)+[a-zé\\"]*`))
		row := rapid.SampledFrom(Table()).Draw(t, "event")
		f := Fields{
			Document: text.Draw(t, "document"), Reason: text.Draw(t, "reason"),
			Outcomes: map[string]int{text.Draw(t, "outcome"): 1},
		}
		var out, errs bytes.Buffer
		For(t.Context(), New(&out, &errs)).Write(row.Name, f)
		require.True(t, out.Len() == 0 || errs.Len() == 0)
		line, want := out.String()+errs.String(), max(row.Level, zerolog.InfoLevel)
		require.Equal(t, 1, strings.Count(line, "\n"))
		require.Equal(t, want, hostLevel(errs.Len() > 0, line), line)
		var got struct {
			Time, Level, Event, Message, Document, Reason string
			Outcomes                                      map[string]int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &got), line)
		require.Equal(t, row.Level.String(), got.Level)
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`, got.Time)
		valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
		require.Equal(t, []string{string(row.Name), row.Says, valid(f.Document), valid(f.Reason)},
			[]string{got.Event, got.Message, got.Document, got.Reason})
		require.Equal(t, f.Outcomes, got.Outcomes)
	})
}

func TestALineOfNoLevelIsInformation(t *testing.T) {
	var out, errs bytes.Buffer
	logger := New(&out, &errs)
	logger.Log().Send()
	require.NotEmpty(t, out.String())
	require.Empty(t, errs.String())
}

func TestIDsComeFromTheContext(t *testing.T) {
	var out bytes.Buffer
	ctx := With(t.Context(), Fields{Function: "BatchWorker", Invocation: "i", Document: "not an id of work"})
	ctx = With(ctx, Fields{Run: "r", Batch: "b"})
	For(ctx, zerolog.New(&out)).Write(RunEnded, Fields{Status: "completed"})
	For(ctx, zerolog.New(&out)).Write(RunEnded, Fields{Run: "other"})
	says := `"message":"a run has ended"}` + "\n"
	require.Equal(t,
		`{"level":"info","event":"run_ended","function":"BatchWorker","invocation":"i","run":"r","batch":"b","status":"completed",`+says+
			`{"level":"info","event":"run_ended","function":"BatchWorker","invocation":"i","run":"other","batch":"b",`+
			says, out.String())
}

func TestOnlyTheLevelsThatAreWantedAreWritten(t *testing.T) {
	var out bytes.Buffer
	log := For(t.Context(), zerolog.New(&out).Level(zerolog.WarnLevel))
	log.Write(BatchCommitted, Fields{})
	require.Empty(t, out.String())
	log.Write(FlowStopped, Fields{})
	require.NotEmpty(t, out.String())
}

func TestAReasonIsOursOrNone(t *testing.T) {
	classified := fault.Wrap(fault.Document, "sqlite: apply", "2628",
		"a text is longer than the user's column", errors.New("content"))
	require.Equal(t, Fields{Kind: fault.Document, Code: "2628", Reason: "a text is longer than the user's column"},
		Fields{}.Of(classified))
	require.Equal(t, Fields{Kind: fault.Internal, Code: "unclassified"}, Fields{}.Of(errors.New("content")))
	require.Equal(t, Fields{}, Fields{}.Of(nil))
}

func TestTheTableIsWhole(t *testing.T) {
	var fields, names []string
	for i := range fieldTypes.NumField() {
		name, says := fieldTypes.Field(i).Tag.Get("log"), fieldTypes.Field(i).Tag.Get("says")
		require.Regexp(t, `^[a-z_]+$`, name)
		require.NotContains(t, fields, name)
		require.NotEmpty(t, says, name)
		fields = append(fields, name)
	}
	used := []string{"function", "invocation", "run", "batch", "condition", "severity"}
	for _, r := range Table() {
		require.Regexp(t, `^[a-z_]+$`, string(r.Name))
		require.NotContains(t, names, string(r.Name))
		names = append(names, string(r.Name))
		require.NotEmpty(t, r.Says, r.Name)
		for _, f := range r.Fields {
			require.Contains(t, fields, f, r.Name)
		}
		require.Equal(t, len(r.Fields), len(slices.Compact(slices.Sorted(slices.Values(r.Fields)))), r.Name)
		used = append(used, r.Fields...)
	}
	require.Subset(t, used, fields, "a field that no event has")
	for _, o := range Originals() {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(o.Ours, -1) {
			require.Contains(t, slices.Concat(names, fields), name[1], o.Line)
		}
	}
}

func TestProducedEventsPage(t *testing.T) {
	const path = "../../docs/events.md"
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(content), TablesBegin+"\n")
	require.True(t, found, TablesBegin)
	tables, after, found := strings.Cut(rest, TablesEnd)
	require.True(t, found, TablesEnd)
	if *update && tables != Tables() {
		require.NoError(t, os.WriteFile(path, []byte(before+TablesBegin+"\n"+Tables()+TablesEnd+after), 0o600))
		tables = Tables()
	}
	require.Equal(t, Tables(), tables, "make update rewrites it")
}
