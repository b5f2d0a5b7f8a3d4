package cosmos

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/internal/invoice"
)

// fakeAccount answers a client's first requests, for the account and the container; the test answers those for
// documents. It is for answers that no working server gives; the emulator (test/emulators/cosmosdb) gives the others.
type fakeAccount struct {
	url       string
	documents http.HandlerFunc
	// account, when set, answers the account request instead.
	account func(w http.ResponseWriter, r *http.Request) (answered bool)
	// accounts and hits count the requests for the account and for documents.
	accounts, hits atomic.Int64
}

func (f *fakeAccount) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/":
		f.accounts.Add(1)
		if f.account != nil && f.account(w, r) {
			return
		}
		_, _ = fmt.Fprintf(w,
			`{"id":"fake","writableLocations":[{"name":"here","databaseAccountEndpoint":%q}],"readableLocations":[{"name":"here","databaseAccountEndpoint":%q}]}`, f.url, f.url)
	case strings.Contains(r.URL.Path, "/docs"):
		f.hits.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		f.documents(w, r)
	default:
		_, _ = io.WriteString(w, `{"id":"c","_rid":"x","partitionKey":{"paths":["/id"],"kind":"Hash"}}`)
	}
}

// startFake starts a fake account and opens it.
func startFake(t *testing.T, documents http.HandlerFunc) (*fakeAccount, *Container) {
	t.Helper()
	f := &fakeAccount{documents: documents}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f, open(t, server.URL, "")
}

// open opens a container of an account on this machine.
func open(t *testing.T, url, more string) *Container {
	t.Helper()
	c, err := Open(
		Options{
			Connection: "AccountEndpoint=" + url + ";AccountKey=" + secret + ";" + more, Database: "db",
			Container: "c", Timeouts: patient(),
		})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// at is a document with an id, as it was at an etag.
func at(id, etag string) invoice.Snapshot {
	doc, err := invoice.Reader{}.ReadSnapshot(fmt.Appendf(nil, `{"id":%q}`, id), time.Now())
	if err != nil {
		panic(err) // the tests' ids are valid
	}
	doc.ETag = etag
	return doc
}

// patience is the deadline of calls that must succeed, on a machine that is ten times too slow.
const patience = 30 * time.Second

// patient are the timeouts of calls that must finish.
func patient() Timeouts {
	return Timeouts{
		Read: patience, Record: patience, Page: patience, Submit: patience, Control: patience, Ping: patience,
	}
}

// quietLog drops a test server's log lines about handshakes that must fail.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }
