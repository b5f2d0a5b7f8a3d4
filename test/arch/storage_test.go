package arch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
	"sqlwriter/internal/retention"
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
	require.Equal(t, retention.LeastAudit, rule.Definition.Actions.BaseBlob.Delete.DaysAfterModificationGreaterThan)
	environment := config.EvidenceContainer + "/" + defaults.SysName
	require.Equal(t, []string{
		environment + "/" + commit.EvidenceRoot + "/", environment + "/dead-letters/",
	}, rule.Definition.Filters.PrefixMatch)
}
