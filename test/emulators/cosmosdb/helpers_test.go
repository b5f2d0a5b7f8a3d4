package cosmosdb_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func pk(id string) azcosmos.PartitionKey { return azcosmos.NewPartitionKeyString(id) }

func ifMatch(tag azcore.ETag) *azcosmos.ItemOptions {
	return &azcosmos.ItemOptions{IfMatchEtag: to.Ptr(tag), EnableContentResponseOnWrite: true}
}

// status is the HTTP status of an SDK call's error, 0 when there is none; substatus its header.
func status(t *testing.T, err error) (status int, substatus string) {
	t.Helper()
	if err == nil {
		return 0, ""
	}
	var e *azcore.ResponseError
	require.True(t, errors.As(err, &e), "not an answer of the service: %v", err)
	return e.StatusCode, e.RawResponse.Header.Get("x-ms-substatus")
}

func requireStatus(t *testing.T, want int, err error) {
	t.Helper()
	got, _ := status(t, err)
	require.Equal(t, want, got, "%v", err)
}

// rows drains a query and gives the rows, and how many pages of them were empty but continued.
func rows(
	ctx context.Context, c *azcosmos.ContainerClient, query string, key azcosmos.PartitionKey,
	opts *azcosmos.QueryOptions,
) (out []string, empty int, err error) {
	pager := c.NewQueryItemsPager(query, key, opts)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return out, empty, err
		}
		if len(page.Items) == 0 && page.ContinuationToken != nil {
			empty++
		}
		for _, it := range page.Items {
			out = append(out, string(it))
		}
	}
	return out, empty, nil
}

// rest is a request without the SDK, signed like the REST reference says.
type rest struct {
	method, path, resourceType, link string
	headers                          map[string]string
	body                             string
	key                              string    // base64; empty = the server's
	date                             time.Time // zero = now
	unsigned                         bool
}

func (r rest) do(t *testing.T, run *cosmosdbtest.Running) (status int, header http.Header, body map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), r.method, strings.TrimSuffix(run.URL, "/")+r.path,
		strings.NewReader(r.body))
	require.NoError(t, err)
	if r.date.IsZero() {
		r.date = time.Now()
	}
	if r.key == "" {
		r.key = run.Server.Key()
	}
	date := strings.ToLower(r.date.UTC().Format(http.TimeFormat))
	key, err := base64.StdEncoding.DecodeString(r.key)
	require.NoError(t, err)
	mac := hmac.New(sha256.New, key)
	_, err = io.WriteString(mac, strings.ToLower(r.method)+"\n"+r.resourceType+"\n"+r.link+"\n"+date+"\n\n")
	require.NoError(t, err)
	req.Header.Set("X-Ms-Date", date)
	req.Header.Set("X-Ms-Version", "2020-11-05")
	if !r.unsigned {
		req.Header.Set("Authorization",
			url.QueryEscape("type=master&ver=1.0&sig="+base64.StdEncoding.EncodeToString(mac.Sum(nil))))
	}
	for n, v := range r.headers {
		req.Header.Set(n, v)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if len(text) > 0 && text[0] == '{' {
		require.NoError(t, json.Unmarshal(text, &body), "%s", text)
	}
	return resp.StatusCode, resp.Header, body
}

// onDocs is a REST request on the documents of db/logs.
func onDocs(method string, headers map[string]string, body string) rest {
	return rest{
		method: method, path: "/dbs/db/colls/logs/docs", resourceType: "docs", link: "dbs/db/colls/logs",
		headers: headers, body: body,
	}
}

// onDoc is a REST request on one document of db/logs whose partition key is its id.
func onDoc(method, id string, headers map[string]string, body string) rest {
	h := map[string]string{"x-ms-documentdb-partitionkey": `["` + id + `"]`}
	for n, v := range headers {
		h[n] = v
	}
	return rest{
		method: method, path: "/dbs/db/colls/logs/docs/" + url.PathEscape(id), resourceType: "docs",
		link: "dbs/db/colls/logs/docs/" + id, headers: h, body: body,
	}
}

// allDocuments reads every document of a container as text.
func allDocuments(t *testing.T, c *azcosmos.ContainerClient) []string {
	t.Helper()
	got, _, err := rows(context.Background(), c, "SELECT * FROM c", azcosmos.NewPartitionKey(), nil)
	require.NoError(t, err)
	return got
}
