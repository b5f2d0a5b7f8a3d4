package migration_test

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/migration"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestFilesAreReadInTheOrderOfTheirNumbers(t *testing.T) {
	files, err := migration.Read(
		fstest.MapFS{"m/0002_b.sql": file("two"), "m/0001_a.sql": file("one"), "m/readme.txt": file("x")}, "m")
	require.NoError(t, err)
	require.Len(t, files, 2)
	require.Equal(t, []string{"0001_a", "0002_b"}, []string{files[0].Name, files[1].Name})
	require.Equal(t, []int{1, 2}, []int{files[0].Number, files[1].Number})
}

func TestAGapIsRefused(t *testing.T) {
	for _, name := range []string{"m/0002_a.sql", "m/a.sql"} {
		_, err := migration.Read(fstest.MapFS{name: file("one")}, "m")
		require.ErrorContains(t, err, "expected number 0001")
	}
}

// A checkout may change line ends.
func TestTheChecksumDoesNotDependOnLineEnds(t *testing.T) {
	require.Equal(t, migration.New(1, "a", "x\ny\n").Checksum, migration.New(1, "a", "x\r\ny\r\n").Checksum)
	require.NotEqual(t, migration.New(1, "a", "x\ny\n").Checksum, migration.New(1, "a", "x\nz\n").Checksum)
}

func TestFilesAndRecordSideBySide(t *testing.T) {
	one, two, three := migration.New(1, "1", "a"), migration.New(2, "2", "b"), migration.New(3, "3", "c")
	at := time.Date(2026, 11, 21, 3, 12, 0, 0, time.UTC)
	states := migration.Compare([]migration.File{one, two, three}, []migration.Done{
		{Number: 1, Name: "1", Checksum: one.Checksum, At: at},
		{Number: 2, Name: "2", Checksum: "another", At: at},
		{Number: 4, Name: "4", Checksum: "newer", At: at},
	})
	require.Equal(t, []migration.State{
		{Number: 1, Name: "1", Status: migration.Applied, At: at},
		{Number: 2, Name: "2", Status: migration.Changed, At: at},
		{Number: 3, Name: "3", Status: migration.Pending},
		{Number: 4, Name: "4", Status: migration.Unknown, At: at},
	}, states)
	require.Equal(t, 1, migration.Count(states, migration.Pending))
}
