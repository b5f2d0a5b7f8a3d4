package cosmosdb_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

// byRID is a REST request on an address of resource ids, signed as the .NET SDK signs it. ids are those of the address,
// in order.
func byRID(method, resourceType string, ids ...string) rest {
	path := "/dbs/" + ids[0]
	for i, word := range []string{"/colls/", "/docs/"} {
		if len(ids) > i+1 {
			path += word + ids[i+1]
		}
	}
	if types := []string{"dbs", "colls", "docs"}; types[len(ids)-1] != resourceType {
		path += "/" + resourceType
	}
	return rest{method: method, path: path, resourceType: resourceType, link: strings.ToLower(ids[len(ids)-1])}
}

// resourceIDs are those of db, db/logs and its document 1, which is in the partition key 1.
func resourceIDs(t *testing.T, run *cosmosdbtest.Running) (db, coll, doc string) {
	t.Helper()
	for _, r := range []struct {
		request rest
		id      *string
	}{
		{rest{method: "GET", path: "/dbs/db", resourceType: "dbs", link: "dbs/db"}, &db},
		{rest{method: "GET", path: "/dbs/db/colls/logs", resourceType: "colls", link: "dbs/db/colls/logs"}, &coll},
		{onDoc("GET", "1", nil, ""), &doc},
	} {
		code, _, body := r.request.do(t, run)
		require.Equal(t, 200, code)
		*r.id, _ = body["_rid"].(string)
	}
	return db, coll, doc
}

func TestResourceIDsAddressWhatNamesAddress(t *testing.T) {
	run := cosmosdbtest.Start(t)
	c := run.Container(t, "db", "logs", "/id")
	for _, id := range []string{"0", "1", "2"} {
		_, err := c.CreateItem(context.Background(), pk(id), []byte(`{"id":"`+id+`","n":1}`), nil)
		require.NoError(t, err)
	}
	db, coll, doc := resourceIDs(t, run)
	key := map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}

	code, _, body := byRID("GET", "dbs", db).do(t, run)
	require.Equal(t, 200, code)
	require.Equal(t, "db", body["id"])
	code, _, body = byRID("GET", "colls", db).do(t, run)
	require.Equal(t, 200, code)
	require.Len(t, body["DocumentCollections"], 1)
	code, header, body := byRID("GET", "colls", db, coll).do(t, run)
	require.Equal(t, 200, code)
	require.Equal(t, db, header.Get("x-ms-content-path"), "the owner")
	require.Equal(t, "dbs/db", header.Get("x-ms-alt-content-path"))
	require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`, header.Get("x-ms-activity-id"))
	require.Equal(t, "logs", body["id"])
	code, _, body = byRID("GET", "pkranges", db, coll).do(t, run)
	require.Equal(t, 200, code)
	require.Len(t, body["PartitionKeyRanges"], 2)
	code, _, body = byRID("GET", "docs", db, coll).do(t, run)
	require.Equal(t, 200, code)
	require.Contains(t, body, "Documents")
	create := byRID("POST", "docs", db, coll)
	create.headers, create.body = map[string]string{"x-ms-documentdb-partitionkey": `["new"]`}, `{"id":"new"}`
	code, _, body = create.do(t, run)
	require.Equal(t, 201, code)
	require.Equal(t, "new", body["id"])

	read := byRID("GET", "docs", db, coll, doc)
	read.headers = key
	code, _, body = read.do(t, run)
	require.Equal(t, 200, code)
	require.Equal(t, "1", body["id"])
	replace := byRID("PUT", "docs", db, coll, doc)
	replace.headers, replace.body = key, `{"id":"1","n":2}`
	code, _, body = replace.do(t, run)
	require.Equal(t, 200, code)
	require.EqualValues(t, 2, body["n"])
	remove := byRID("DELETE", "docs", db, coll, doc)
	remove.headers = key
	code, _, _ = remove.do(t, run)
	require.Equal(t, 204, code)
	code, _, _ = read.do(t, run)
	require.Equal(t, 404, code)

	require.Equal(t, 3, run.Server.Count(cosmosdb.OpRead, "logs"), "faults and counters know the container by its name")
}

func TestResourceIDsAreSignedAloneInLowerCase(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	code, _, _ := onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}, `{"id":"1"}`).do(t, run)
	require.Equal(t, 201, code)
	db, coll, doc := resourceIDs(t, run)
	for name, tc := range map[string]struct {
		link string
		want int
	}{
		"the last id in lower case": {strings.ToLower(coll), 200},
		"in upper case":             {strings.ToUpper(coll), 401},
		"the whole address":         {"dbs/" + db + "/colls/" + coll, 401},
		"by names":                  {"dbs/db/colls/logs", 401},
	} {
		r := byRID("GET", "pkranges", db, coll)
		r.link = tc.link
		code, _, _ := r.do(t, run)
		require.Equal(t, tc.want, code, name)
	}
	for name, r := range map[string]rest{
		"no such database":       byRID("GET", "dbs", "AAAAAA=="),
		"no such container":      byRID("GET", "pkranges", db, "AAAAAAAAAAA="),
		"a container of another": byRID("GET", "colls", "AAAAAA==", coll),
		"names and ids are not mixed": {
			method: "GET", path: "/dbs/db/colls/" + coll, resourceType: "colls", link: "dbs/db/colls/" + coll,
		},
	} {
		code, _, _ := r.do(t, run)
		require.Equal(t, 404, code, name)
	}
	other := byRID("GET", "docs", db, coll, doc)
	other.headers = map[string]string{"x-ms-documentdb-partitionkey": `["2"]`}
	code, _, _ = other.do(t, run)
	require.Equal(t, 404, code, "the document is in another partition key")
	code, _, _ = byRID("GET", "docs", db, coll, doc).do(t, run)
	require.Equal(t, 400, code, "without a partition key")
}
