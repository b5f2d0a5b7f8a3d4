package arch_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/events"
)

// Each alert has a whole header, a section of the runbook, a row of the README and a rule of alerts.bicep, and asks only for events of the table
// and for fields that these have.
func TestEachAlertAsksForWhatIsLogged(t *testing.T) {
	files := tracked(t)
	rows := map[string]events.Row{}
	for _, r := range events.Table() {
		rows[string(r.Name)] = r
	}
	header := regexp.MustCompile(`\A// [A-Z].*\.\n// severity: (wake|tell)\n// period: (\d+[mh])\n// every: (\d+[mh])\n// threshold: .+\n// runbook: ([a-z0-9-]+)\n(?:// .+\n)*`)
	readme, bicep := string(files["deploy/alerts/README.md"]), string(files["deploy/alerts/alerts.bicep"])
	sections := headings(string(files["docs/runbook.md"]))
	alerts := 0
	for file, text := range files {
		name, ours := strings.CutSuffix(strings.TrimPrefix(file, "deploy/alerts/"), ".kql")
		if !ours {
			continue
		}
		alerts++
		head := header.FindStringSubmatch(string(text))
		require.NotNil(t, head, "%s: the header is not whole", file)
		severity, period, every, section := head[1], strings.ToUpper(head[2]), strings.ToUpper(head[3]), head[4]
		require.Contains(t, sections, section, file)
		require.Contains(t, readme, fmt.Sprintf("| [%s](%s.kql) | %s | ", name, name, severity), file)
		require.Contains(t, readme, "runbook.md#"+section, file)
		require.Contains(t, bicep, fmt.Sprintf("{ name: '%s', severity: '%s', period: 'PT%s', every: 'PT%s', query: loadTextContent('%s.kql') }", name, severity, period, every, name), file)
		query := string(text[len(head[0]):])
		require.Contains(t, query, "ago("+head[2]+")", "%s: the query looks back as far as its period", file)
		named, fields := eventsOf(query), []string{"event", "function", "invocation", "run", "batch"}
		require.NotEmpty(t, named, file)
		for _, e := range named {
			require.Contains(t, rows, e, file)
			fields = append(fields, rows[e].Fields...)
		}
		for _, field := range regexp.MustCompile(`\be\.(\w+)`).FindAllStringSubmatch(query, -1) {
			require.Contains(t, fields, field[1], "%s: none of its events has it", file)
		}
	}
	require.Equal(t, alerts, strings.Count(bicep, "loadTextContent("))
	require.Equal(t, alerts, strings.Count(readme, ".kql) |"))
	require.GreaterOrEqual(t, alerts, 8)
}

// eventsOf are the events that a query compares the column event with.
func eventsOf(query string) []string {
	var found []string
	for _, condition := range regexp.MustCompile(`\bevent (?:==|!=|in \() ?("[^)\n]*)`).FindAllStringSubmatch(query, -1) {
		for _, name := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(condition[1], -1) {
			found = append(found, name[1])
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}

// headings are the anchors of a page's sections.
func headings(page string) []string {
	var anchors []string
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		plain := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(h[1]), "")
		anchors = append(anchors, strings.ReplaceAll(plain, " ", "-"))
	}
	return anchors
}

// The alert, `feed_missed` and what a status says of the timer count with five minutes between two ticks.
func TestTheTimerTicksEveryFiveMinutes(t *testing.T) {
	files := tracked(t)
	require.Contains(t, string(files["functions/RecoverRetries/function.json"]), `"schedule": "0 */5 * * * *"`)
	require.Contains(t, string(files["deploy/alerts/timer-silent.kql"]), "// threshold: no line of RecoverRetries for 20 minutes, which are four ticks ")
}
