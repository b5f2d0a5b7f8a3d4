package arch_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The handler, sqlwriterctl and the local stack read the settings of an adapter alike, because one package opens it for
// them.
func TestAdaptersAreOpenedInOnePlace(t *testing.T) {
	opens := regexp.MustCompile(`\b(?:(?:cosmos|blob|servicebus|sqlserver|sqlite|breaker)\.(?:Open|New)\(|invoice\.Reader\{)`)
	found := map[string]bool{}
	root := os.DirFS("../..")
	for _, dir := range []string{"cmd", "handlers", "internal"} {
		require.NoError(t, fs.WalkDir(root, dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(root, path)
			if opens.Match(text) {
				found[path] = true
			}
			return err
		}))
	}
	require.Equal(t, map[string]bool{
		"internal/app/app.go":          true, // a breaker that is never asked, while the settings are not valid
		"internal/app/open/breaker.go": true,
		"internal/commit/commit.go":    true, // a caller that gives none has one of its own, which is always closed
		"internal/app/open/open.go":    true,
		"internal/app/open/sql.go":     true,
	}, found)
}
