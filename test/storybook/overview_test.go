package storybook_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/test/storybook"
)

// story is one of the stories.
func story(t *testing.T, name string) storybook.Story {
	t.Helper()
	for _, s := range storybook.Stories() {
		if s.Name == name {
			return s
		}
	}
	require.Fail(t, "no such story", name)
	return storybook.Story{}
}

// shown is the text of a page, as a person reads it.
func shown(t *testing.T, s storybook.Story) string {
	t.Helper()
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s.Render(t.Context()).Body))
	for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
		if kind == html.TextToken {
			b.WriteString(html.UnescapeString(string(z.Text())) + " ")
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// What somebody must read who was just woken, by the state.
func TestTheOverviewSaysWhatAWokenPersonAsks(t *testing.T) {
	for name, says := range map[string][]string{
		"overview-stopped": {
			"Stopped: nothing is written to SQL The flow is stopped since 03:12:05 (infrastructure refused: connection refused by sql-prod-01), next probe in 38s. Documents wait; none is lost, and no retry is spent.",
			"stopped 42 min", "paused 2 min", "stopped 62 s", "about, in the 60 min up to 03:10:07",
		},
		"overview-refused": {
			"Stopped: SQL is not the database that was written to last",
			"Do: find out which database is the right one; only then connect it, or accept this one",
		},
		"overview-gaps":        {"timer silent 3 h 0 min", "waiting, 5,000+ at most", "no tick for 3 h 0 min"},
		"overview-paused":      {"Paused by a.lopez@example.com", "maintenance of SQL. Documents wait", "Resume..."},
		"overview-cosmos-away": {"Cosmos DB does not answer"},
		"overview-stale":       {"the timer is silent since 02:56:07"},
		"overview-first-start": {"The timer has not sampled twice yet.", "Not known: the timer has not counted."},
		"overview-shadow":      {"web, shadow"},
	} {
		text := shown(t, story(t, name))
		for _, one := range says {
			require.Contains(t, text, one, name)
		}
		if name == "overview-refused" {
			require.NotContains(t, text, "Probe now", "a probe would change nothing")
		}
	}
}

// What nobody retries is not said to retry by itself, whoever looks.
func TestAReaderIsNotToldThatFailedDocumentsRetryByThemselves(t *testing.T) {
	s := story(t, "overview-stopped")
	require.Contains(t, shown(t, s), "Retry...")
	require.NotContains(t, shown(t, s), "not by itself")
	s.Role = opsapi.Reader
	text := shown(t, s)
	require.Contains(t, text, "2026-11-22 02:40:01.553120-06:00-0004-1421549 not by itself")
	require.NotContains(t, text, "...", "no action")
}

// The overview says of the flow, and of what asks for attention, what `+"`sqlwriterctl status`"+` says.
func TestTheOverviewHasTheWordsOfStatus(t *testing.T) {
	// each surface has its own way to write them
	times := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)`)
	for _, s := range storybook.Stories() {
		status, has := s.Answers["status.get"].(ops.Status)
		if !has || s.Path != "" {
			continue
		}
		text := shown(t, s)
		says := []string{status.Flow.Says}
		for _, a := range status.Attention {
			says = append(says, a.Says)
		}
		for _, one := range says {
			for _, part := range times.Split(one, -1) {
				require.Contains(t, text, strings.Join(strings.Fields(part), " "), s.Name)
			}
		}
	}
}
