package condition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/condition"
)

func TestACommandIsTheFirstOfAText(t *testing.T) {
	for text, want := range map[string]string{
		"look, then `az a b` or `sqlwriterctl c`": "az a b",
		"read `MODE`, then `sqlwriterctl status`": "sqlwriterctl status",
		"nothing": "sqlwriterctl explain CODE",
	} {
		require.Equal(t, want, condition.Command(text, "CODE"))
	}
}
