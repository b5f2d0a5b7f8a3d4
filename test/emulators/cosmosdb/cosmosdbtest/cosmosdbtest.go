// Package cosmosdbtest starts the Cosmos DB emulator for a test, with a real azcosmos client connected to it. Call
// Start; the end of the test stops the emulator.
package cosmosdbtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/loopback"
)

// Running is a server that listens on 127.0.0.1 until the test ends.
type Running struct {
	// URL is the account endpoint, http://127.0.0.1:port/.
	URL string
	// ConnectionString is "AccountEndpoint=...;AccountKey=...;".
	ConnectionString string
	// Client is an azcosmos client with its default retries.
	Client *azcosmos.Client
	// Server counts requests and takes fault rules.
	Server *cosmosdb.Server

	http *httptest.Server
	once sync.Once
}

// Start runs a server in memory in which every third page of a query is empty; change may alter the
// options. Everything is stopped when the test ends, held requests included.
func Start(t testing.TB, change ...func(*cosmosdb.Options)) *Running {
	t.Helper()
	opts := cosmosdb.Options{EmptyPages: 3}
	for _, c := range change {
		c(&opts)
	}
	server, err := cosmosdb.New(opts)
	require.NoError(t, err)
	listener := httptest.NewUnstartedServer(server)
	require.NoError(t, listener.Listener.Close())
	listener.Listener, err = net.Listen("tcp", loopback.Address(t)) //nolint:noctx // it listens at once or not at all
	require.NoError(t, err)
	listener.Start()
	r := &Running{
		URL: listener.URL + "/", Server: server, http: listener,
		ConnectionString: "AccountEndpoint=" + listener.URL + "/;AccountKey=" + server.Key() + ";",
	}
	r.Client = r.NewClient(t, nil)
	t.Cleanup(r.Kill)
	return r
}

// Kill stops listening and drops all connections, as the death of the process would: held requests get no answer.
func (r *Running) Kill() {
	r.once.Do(func() {
		r.Server.Close()
		r.http.CloseClientConnections()
		r.http.Close()
	})
}

// NewClient makes another client with the given options, closed when the test ends. It has connections of
// its own unless the options bring a transport.
func (r *Running) NewClient(t testing.TB, opts *azcosmos.ClientOptions) *azcosmos.Client {
	t.Helper()
	if opts == nil {
		opts = &azcosmos.ClientOptions{}
	}
	if opts.Transport == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: 64}
		t.Cleanup(transport.CloseIdleConnections)
		opts.Transport = &http.Client{Transport: transport}
	}
	cred, err := azcosmos.NewKeyCredential(r.Server.Key())
	require.NoError(t, err)
	client, err := azcosmos.NewClientWithKey(r.URL, cred, opts)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// Leases makes a container of leases: partition key /id, time to live switched on.
func (r *Running) Leases(t testing.TB, database, id string) *azcosmos.ContainerClient {
	t.Helper()
	return r.Container(t, database, id, "/id", func(p *azcosmos.ContainerProperties) {
		p.DefaultTimeToLive = to.Ptr[int32](-1)
	})
}

// Container makes a container with the given partition key path, and its database when there is none, and
// gives a client for it. change may alter its properties.
func (r *Running) Container(
	t testing.TB, database, id, partitionKey string, change ...func(*azcosmos.ContainerProperties),
) *azcosmos.ContainerClient {
	t.Helper()
	ctx := context.Background()
	if _, err := r.Client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: database}, nil); err != nil {
		var e *azcore.ResponseError
		require.True(t, errors.As(err, &e) && e.StatusCode == http.StatusConflict, "create database: %v", err)
	}
	db, err := r.Client.NewDatabase(database)
	require.NoError(t, err)
	props := azcosmos.ContainerProperties{
		ID:                     id,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{partitionKey}, Version: 2},
	}
	for _, c := range change {
		c(&props)
	}
	_, err = db.CreateContainer(ctx, props, nil)
	require.NoError(t, err)
	container, err := r.Client.NewContainer(database, id)
	require.NoError(t, err)
	return container
}
