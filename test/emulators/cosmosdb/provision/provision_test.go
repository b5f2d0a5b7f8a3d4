package provision_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
	"sqlwriter/test/emulators/cosmosdb/provision"
)

func TestMakingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	server := cosmosdbtest.Start(t)
	two := provision.Container{Name: "levels", Key: []string{"/a", "/b/c"}}
	for range 2 {
		require.NoError(t,
			provision.Make(t.Context(), server.ConnectionString, "db", provision.Results("results"),
				provision.Own("own"), provision.Leases("leases"), two))
	}
	for name, want := range map[string]struct {
		key   []string
		lives bool
	}{
		"results": {[]string{"/request_details/id"}, false}, "own": {[]string{"/id"}, false},
		"leases": {[]string{"/id"}, true}, "levels": {two.Key, false},
	} {
		c, err := server.Client.NewContainer("db", name)
		require.NoError(t, err)
		found, err := c.Read(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want.key, found.ContainerProperties.PartitionKeyDefinition.Paths, name)
		require.Equal(t, want.lives, found.ContainerProperties.DefaultTimeToLive != nil, name)
	}
	require.Error(t,
		provision.Make(t.Context(), server.ConnectionString, "db",
			provision.Container{Name: "bad", Key: []string{"no slash"}}))
}
