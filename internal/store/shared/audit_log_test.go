package shared_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/store/shared"
)

func TestMoment(t *testing.T) {
	at := time.Date(2025, 12, 18, 16, 0, 0, 123e6, time.UTC)
	for name, value := range map[string]any{
		"a time": at.In(time.FixedZone("", -6*3600)), "a text": "2025-12-18T16:00:00.123Z",
	} {
		found, err := shared.ScanMoment(value)
		require.NoError(t, err, name)
		require.Equal(t, at, found, name)
	}
	found, err := shared.ScanMoment(nil)
	require.NoError(t, err)
	require.True(t, found.IsZero())
	for _, value := range []any{"yesterday", int64(1)} {
		_, err := shared.ScanMoment(value)
		require.Error(t, err, value)
	}
}
