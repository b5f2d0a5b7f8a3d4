package cosmosdb_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestTimeToLive(t *testing.T) {
	ctx := context.Background()
	var clock atomic.Int64
	clock.Store(1_766_000_000)
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) {
		o.Now = func() time.Time { return time.Unix(clock.Load(), 0) }
	})
	off := run.Container(t, "db", "off", "/id")
	onDemand := run.Container(t, "db", "ondemand", "/id", func(p *azcosmos.ContainerProperties) {
		p.DefaultTimeToLive = to.Ptr(int32(-1))
	})
	always := run.Container(t, "db", "always", "/id", func(p *azcosmos.ContainerProperties) {
		p.DefaultTimeToLive = to.Ptr(int32(10))
	})
	for name, tc := range map[string]struct {
		c    *azcosmos.ContainerClient
		ttl  string
		life int64 // seconds until it is gone, 0 = never
	}{
		"off with ttl": {off, `,"ttl":1`, 0}, "on demand with": {onDemand, `,"ttl":1`, 1},
		"on demand without": {onDemand, "", 0},
		"always without":    {always, "", 10}, "always shorter": {always, `,"ttl":3`, 3},
		"always never": {always, `,"ttl":-1`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			id := fmt.Sprintf("%q", name)
			_, err := tc.c.CreateItem(ctx, pk(name), []byte(`{"id":`+id+tc.ttl+`}`), nil)
			require.NoError(t, err)
			for _, step := range []int64{0, 1, 3, 10, 1000} {
				clock.Store(1_766_000_000 + step)
				_, err := tc.c.ReadItem(ctx, pk(name), name, nil)
				got, _, qErr := rows(ctx, tc.c, "SELECT VALUE c.id FROM c WHERE c.id = @id", azcosmos.NewPartitionKey(),
					&azcosmos.QueryOptions{QueryParameters: []azcosmos.QueryParameter{{Name: "@id", Value: name}}})
				require.NoError(t, qErr)
				if tc.life == 0 || step < tc.life {
					require.NoError(t, err, "after %d s", step)
					require.Len(t, got, 1)
				} else {
					requireStatus(t, 404, err)
					require.Empty(t, got)
				}
			}
			_, err = tc.c.CreateItem(ctx, pk(name), []byte(`{"id":`+id+`}`), nil)
			if tc.life == 0 {
				requireStatus(t, 409, err)
			} else {
				require.NoError(t, err, "the id is free again")
			}
			clock.Store(1_766_000_000)
		})
	}
	for _, bad := range []string{"0", "-2", `"5"`, "1.5", "3000000000"} {
		_, err := always.CreateItem(ctx, pk("bad"), []byte(`{"id":"bad","ttl":`+bad+`}`), nil)
		requireStatus(t, 400, err)
	}
}

func TestTimeToLiveTheExpiredVersionDoesNotComeBack(t *testing.T) {
	ctx := context.Background()
	var clock atomic.Int64
	clock.Store(1_766_000_000)
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) {
		o.Now = func() time.Time { return time.Unix(clock.Load(), 0) }
	})
	c := run.Container(t, "db", "logs", "/id", func(p *azcosmos.ContainerProperties) {
		p.DefaultTimeToLive = to.Ptr(int32(10))
	})
	_, err := c.CreateItem(ctx, pk("1"), []byte(`{"id":"1","version":1}`), nil)
	require.NoError(t, err)
	clock.Add(20)
	_, err = c.UpsertItem(ctx, pk("1"), []byte(`{"id":"1","version":2}`), nil)
	require.NoError(t, err)
	props, err := c.Read(ctx, nil)
	require.NoError(t, err)
	props.ContainerProperties.DefaultTimeToLive = nil
	_, err = c.Replace(ctx, *props.ContainerProperties, nil)
	require.NoError(t, err)
	got, _, err := rows(ctx, c, "SELECT VALUE c.version FROM c", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, got)
}
