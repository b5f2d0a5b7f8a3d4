package cosmosdb

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

func TestVersionsOfPartitionKeys(t *testing.T) {
	for text, want := range map[string]int{`1`: 1, `2`: 2, `"V1"`: 1, `"V2"`: 2, `null`: 1, `3`: 0, `"2"`: 0, `true`: 0} {
		v, err := jsonval.Parse(`{"paths":["/id"],"kind":"Hash","version":` + text + `}`)
		require.NoError(t, err)
		def, apiErr := parsePKDefinition(v)
		require.Equal(t, want, def.version, text)
		require.Equal(t, want == 0, apiErr != nil, text)
	}
}
