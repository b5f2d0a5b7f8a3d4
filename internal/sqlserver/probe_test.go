package sqlserver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/sqlserver"
)

// readOnly makes the database refuse every write. The change ends all other sessions, so nobody keeps an idle one.
func (h *hands) readOnly(t testing.TB) func() {
	t.Helper()
	set := func(text string) {
		for _, db := range []interface{ SetMaxIdleConns(n int) }{h.db, h.store.DB()} {
			db.SetMaxIdleConns(0)
			db.SetMaxIdleConns(2)
		}
		h.exec(t, text)
	}
	set(`ALTER DATABASE CURRENT SET READ_ONLY WITH ROLLBACK IMMEDIATE`)
	return func() { set(`ALTER DATABASE CURRENT SET READ_WRITE WITH ROLLBACK IMMEDIATE`) }
}

func TestAProbeOfADatabaseThatOnlyAnswersReads(t *testing.T) {
	require.NoError(t, sqlserver.Probed("READ_WRITE"))
	require.NoError(t, sqlserver.Probed(""), "a server that does not know the property is believed")
	err := sqlserver.Probed("READ_ONLY")
	require.Equal(t, fault.Infrastructure, fault.KindOf(err))
	require.Equal(t, "read_only", fault.CodeOf(err))
}
