package arch_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// category is that of the handler's lines in the table traces (docs/facts.md F26); any is what attention.kql calls a
// beginning that does not count.
const category, anyBeginning = "Host.Function.Console", "any"

// Each alert has a whole header, a section of the runbook, a row of the README and a rule of alerts.bicep. Each member
// that it reads, and each text that it compares one with, stands in a line that the use cases wrote.
func TestEachAlertAsksForWhatIsLogged(t *testing.T) {
	files := tracked(t)
	members, values := recorded(t, files["internal/ops/testdata/lines.jsonl"])
	header := regexp.MustCompile(
		`\A// [A-Z].*\.\n// period: (\d+[mhd])\n// every: (\d+[mhd])\n// threshold: .+\n// runbook: ([a-z0-9-]+)\n(?:// .+\n)*`)
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
		require.Contains(t, sections, head[3], file)
		require.Contains(t, readme, fmt.Sprintf("| [%s](%s.kql) | ", name, name), file)
		require.Contains(t, readme, "runbook.md#"+head[3], file)
		require.Contains(t, bicep,
			fmt.Sprintf("period: '%s', every: '%s', query: loadTextContent('%s.kql')", iso(head[1]),
				iso(head[2]), name), file)
		query := string(text[len(head[0]):])
		require.Contains(t, query, "ago("+head[1]+")", "%s: the query looks back as far as its period", file)
		require.NotEmpty(t, regexp.MustCompile(`\be\.\w+`).FindString(query), file)
		for _, member := range regexp.MustCompile(`\be\.(\w+)`).FindAllStringSubmatch(query, -1) {
			require.Contains(t, members, member[1], file)
		}
		for _, constant := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(query, -1) {
			require.Contains(t, append(values, category, anyBeginning), constant[1], file)
		}
	}
	require.Equal(t, 3, alerts)
	require.Equal(t, alerts, strings.Count(readme, ".kql) |"))
	require.Equal(t, alerts+1, strings.Count(bicep, "loadTextContent("), "attention has a rule for each severity")
}

// recorded are the names of the members of recorded lines, and their texts.
func recorded(t *testing.T, lines []byte) (members, values []string) {
	t.Helper()
	for line := range strings.Lines(string(lines)) {
		var all map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &all))
		for name, value := range all {
			members = append(members, name)
			if text, ok := value.(string); ok {
				values = append(values, text)
			}
		}
	}
	require.NotEmpty(t, members)
	return slices.Compact(slices.Sorted(slices.Values(members))), values
}

// iso is a time of KQL as a template has it.
func iso(span string) string {
	if strings.HasSuffix(span, "d") {
		return "P" + strings.ToUpper(span)
	}
	return "PT" + strings.ToUpper(span)
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
	require.Contains(t, string(files["deploy/alerts/no-tick.kql"]),
		"// threshold: no line of RecoverRetries for 20 minutes, which are four ticks,")
}
