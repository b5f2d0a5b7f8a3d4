package sqlserver_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/internal/run"
	"sqlwriter/internal/store/sqlserver"
	"sqlwriter/test/conformance"
)

func TestAuditLog(t *testing.T) {
	d := newDatabase(t)
	conformance.TestAuditLog(t, func(t testing.TB) conformance.AuditLogHarness {
		d.spy.Exec(t, `DELETE FROM sqlwriter.run`)
		d.spy.Exec(t, `DELETE FROM sqlwriter.audit_log`)
		return conformance.AuditLogHarness{
			AuditLog:   d.store.AuditLog(conformance.AuditLogSysName),
			Store:      d.store.RunStore(conformance.AuditLogSysName),
			Other:      d.store.AuditLog(conformance.AuditLogOtherSysName),
			OtherStore: d.store.RunStore(conformance.AuditLogOtherSysName), Now: time.Now,
			HideAudits: func(t testing.TB) func() { return d.rename(t, "audit_log") },
		}
	})
}

// rename hides one of our tables until restore.
func (d *database) rename(t testing.TB, table string) (restore func()) {
	t.Helper()
	d.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'sqlwriter.%[1]s', N'hidden_%[1]s', N'OBJECT'`, table))
	return func() {
		d.spy.Exec(t, fmt.Sprintf(`EXEC sp_rename N'sqlwriter.hidden_%[1]s', N'%[1]s', N'OBJECT'`, table))
	}
}

// declared sorts the statements by name and adds the parameters that the driver declares.
func declared(t *testing.T, texts map[string]string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		var declared []string
		for _, parameter := range regexp.MustCompile(`@\w+`).FindAllString(statementsIn(texts[name]), -1) {
			if d := "DECLARE " + parameter + " " + declaration(t, parameter[1:]) +
				";\n"; !slices.Contains(declared, d) {
				declared = append(declared, d)
			}
		}
		fmt.Fprintf(&b, "-- %s\n%s%sGO\n", name, strings.Join(declared, ""), texts[name])
	}
	return b.String()
}

// statementsIn is a text without comments.
func statementsIn(text string) string {
	return regexp.MustCompile(`(?m)^--.*$`).ReplaceAllString(text, "")
}

// useAuditLog calls every method of the audit log.
func useAuditLog(t *testing.T, s *sqlserver.Store) {
	t.Helper()
	ctx, j := t.Context(), s.AuditLog("web")
	require.NoError(t, j.Write(ctx, run.Audit{Action: "pause"}))
	audits, err := j.Audits(ctx, ops.AuditQuery{Limit: 10})
	require.NoError(t, err)
	require.Len(t, audits, 1)
}
