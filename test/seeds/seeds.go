// Package seeds says where random histories begin.
package seeds

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Variable holds the first seed. `make e2e` sets it to a new one each time, and prints it.
const Variable = "SQLWRITER_TEST_SEED"

// First is the seed of the first history of a test; the others follow it. Without Variable it is 1, so that people
// who run a test twice see the same histories.
func First(t testing.TB) int64 {
	t.Helper()
	text, set := os.LookupEnv(Variable)
	if !set {
		return 1
	}
	first, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, "%s: expected a whole number, found %q", Variable, text)
	return first
}
