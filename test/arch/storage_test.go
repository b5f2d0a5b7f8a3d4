package arch_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
)

// The rule deletes what the app stores under the default names, and nothing before a comparison stops expecting it.
func TestTheLifecycleRuleKeepsEvidenceAsLongAsTheAuditLog(t *testing.T) {
	var policy struct {
		Rules []struct {
			Enabled    bool
			Name, Type string
			Definition struct {
				Filters struct{ BlobTypes, PrefixMatch []string }
				Actions struct {
					BaseBlob struct {
						Delete struct{ DaysAfterModificationGreaterThan int }
					}
				}
			}
		}
	}
	d := json.NewDecoder(strings.NewReader(string(tracked(t)["deploy/storage/lifecycle.json"])))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&policy))
	require.Len(t, policy.Rules, 1)
	rule, defaults := policy.Rules[0], config.Of(func(string) string { return "" })
	require.True(t, rule.Enabled)
	require.Equal(t, "Lifecycle", rule.Type)
	require.Equal(t, []string{"blockBlob"}, rule.Definition.Filters.BlobTypes)
	days := rule.Definition.Actions.BaseBlob.Delete.DaysAfterModificationGreaterThan
	for _, engine := range []string{"sqlite", "sqlserver"} {
		require.Contains(t, string(tracked(t)["internal/store/"+engine+"/migrations/0001_schema.sql"]),
			fmt.Sprintf("CHECK (kept_days >= %d)", days))
	}
	environment := config.EvidenceContainer + "/" + defaults.SysName
	require.Equal(t, []string{
		environment + "/" + commit.EvidenceRoot + "/", environment + "/dead-letters/",
	}, rule.Definition.Filters.PrefixMatch)
}
