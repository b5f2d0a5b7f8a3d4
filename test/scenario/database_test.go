package scenario

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/sqlite"
	"sqlwriter/test/inmem"
	"sqlwriter/test/mapping"
)

// database is the real sink behind the spies: in memory, or a SQLite file.
type database struct {
	commit.Sink
	addLines func(lines ...int64)
	// maker reads the column of a line that the documents here write.
	maker func(line int64) string
	close func()
}

const makerColumn = "CLN_MFR_AI_NM"

func openDatabase(t *testing.T, file bool) database {
	t.Helper()
	if file {
		return openSQLite(t)
	}
	sink := inmem.NewSink()
	return database{
		Sink: sink, addLines: sink.AddLines, close: func() {},
		maker: func(line int64) string {
			l, ok := sink.Line(line)
			for i, c := range mapping.InUse().Columns() {
				if ok && c.Table == invoice.Detail && c.Name == makerColumn {
					return l.Values[i].Text
				}
			}
			return ""
		},
	}
}

// openSQLite makes a file inside the bubble. Commits need not survive a power cut here, and tests are many.
func openSQLite(t *testing.T) database {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "scenario.db"), sqlite.Options{})
	require.NoError(t, err)
	_, err = s.Writer().ExecContext(t.Context(), "PRAGMA synchronous = OFF")
	require.NoError(t, err)
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, sqlite.CreateSampleSchema(t.Context(), s.Writer()))
	return database{
		Sink: s,
		addLines: func(lines ...int64) {
			tx, err := s.Writer().Begin()
			require.NoError(t, err)
			for _, line := range lines {
				_, err := tx.Exec(
					`INSERT OR IGNORE INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC) VALUES (?, 'N', 'D')`, line)
				require.NoError(t, err)
			}
			require.NoError(t, tx.Commit())
		},
		maker: func(line int64) (found string) {
			row := s.Writer().QueryRow(`SELECT COALESCE(`+makerColumn+
				`, '') FROM IVCE_DTL WHERE IVCE_DTL_UID = ?`, line)
			require.NoError(t, row.Scan(&found))
			return found
		},
		close: func() { require.NoError(t, s.Close()) },
	}
}
