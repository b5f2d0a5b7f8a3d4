package cosmosdb_test

import (
	"context"
	"net/http"
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
	code, _, body = byRID("GET", "colls", db, coll).do(t, run)
	require.Equal(t, 200, code)
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

// An id is unique within a partition key only; a resource id is within the container.
func TestResourceIDOfADocumentIsItsOwn(t *testing.T) {
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.Ranges = 1 })
	run.Container(t, "db", "logs", "/pk")
	for _, document := range []string{`{"id":"1","pk":"a"}`, `{"id":"1","pk":"b"}`, `{"id":"2","pk":"b"}`} {
		pk := document[len(`{"id":"1","pk":`) : len(document)-1]
		code, _, _ := onDocs("POST",
			map[string]string{"x-ms-documentdb-partitionkey": "[" + pk + "]"}, document).do(t, run)
		require.Equal(t, 201, code)
	}
	_, _, database := rest{method: "GET", path: "/dbs/db", resourceType: "dbs", link: "dbs/db"}.do(t, run)
	db, _ := database["_rid"].(string)
	for id, keys := range map[string]map[string]int{"1": {"a": 404, "b": 200}, "2": {"a": 404, "b": 200}} {
		byName := onDoc("GET", id, map[string]string{"x-ms-documentdb-partitionkey": `["b"]`}, "")
		_, _, document := byName.do(t, run)
		rid, _ := document["_rid"].(string)
		for key, want := range keys {
			r := byRID("GET", "docs", db, containerRID(t, run), rid)
			r.headers = map[string]string{"x-ms-documentdb-partitionkey": `["` + key + `"]`}
			code, _, body := r.do(t, run)
			require.Equal(t, want, code, "document %s by partition key %s", id, key)
			if want == 200 {
				require.Equal(t, rid, body["_rid"])
			}
		}
	}
}

func TestAnswersNameTheirOwnerInBothForms(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	code, _, _ := onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}, `{"id":"1"}`).do(t, run)
	require.Equal(t, 201, code)
	db, coll, doc := resourceIDs(t, run)
	read := byRID("GET", "docs", db, coll, doc)
	read.headers = map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}
	for name, r := range map[string]rest{
		"by name": onDoc("GET", "1", nil, ""), "by resource id": read, "404": onDoc("GET", "none", nil, ""),
		"list": onDocs("GET", nil, ""),
	} {
		_, header, _ := r.do(t, run)
		require.Equal(t, coll, header.Get("x-ms-content-path"), name)
		require.Equal(t, "dbs/db/colls/logs", header.Get("x-ms-alt-content-path"), name)
	}
	for name, r := range map[string]rest{
		"a container": {
			method: "GET", path: "/dbs/db/colls/logs", resourceType: "colls", link: "dbs/db/colls/logs",
		},
		"a container by resource id": byRID("GET", "colls", db, coll),
		"the list of containers":     byRID("GET", "colls", db),
	} {
		_, header, _ := r.do(t, run)
		require.Equal(t, db, header.Get("x-ms-content-path"), name)
		require.Equal(t, "dbs/db", header.Get("x-ms-alt-content-path"), name)
	}
}

func TestActivityIDsAreGUIDs(t *testing.T) {
	run := cosmosdbtest.Start(t)
	const form = `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`
	seen := map[string]bool{}
	for name, sent := range map[string]string{
		"none": "", "of the client": "0f8fad5b-d9cb-469f-a165-70867728950e", "no GUID": "attempt-1",
	} {
		_, header, _ := rest{
			method: "GET", path: "/dbs", resourceType: "dbs", headers: map[string]string{"x-ms-activity-id": sent},
		}.do(t, run)
		got := header.Get("x-ms-activity-id")
		require.Regexp(t, form, got, name)
		seen[got] = true
	}
	require.Len(t, seen, 3)
	require.Contains(t, seen, "0f8fad5b-d9cb-469f-a165-70867728950e", "a client's own is given back")
}

// The .NET SDK and the JavaScript SDK look offers, databases and containers up by queries.
func TestQueriesOverDatabasesContainersAndOffers(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	run.Container(t, "db", "other", "/id")
	run.Container(t, "second", "logs", "/id")
	code, _, _ := onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}, `{"id":"1"}`).do(t, run)
	require.Equal(t, 201, code)
	db, coll, _ := resourceIDs(t, run)
	self := "dbs/" + db + "/colls/" + coll + "/"
	for name, tc := range map[string]struct {
		path, resourceType, link, list, query string
		want                                  int
	}{
		"databases by id": {
			"/dbs", "dbs", "", "Databases",
			`{"query":"SELECT * FROM d WHERE d.id = @id","parameters":[{"name":"@id","value":"db"}]}`, 1,
		},
		"containers by id": {
			"/dbs/db/colls", "colls", "dbs/db", "DocumentCollections",
			`{"query":"SELECT * FROM c WHERE c.id = 'logs'"}`, 1,
		},
		"containers": {
			"/dbs/db/colls", "colls", "dbs/db", "DocumentCollections", `{"query":"SELECT VALUE c.id FROM c"}`, 2,
		},
		"offer, .NET SDK": {
			"/offers", "offers", "", "Offers",
			`{"query":"SELECT * FROM root r WHERE r.offerResourceId = @targetRID","parameters":[{"name":"@targetRID","value":"` + coll + `"}]}`, 1,
		},
		"offer, JavaScript": {
			"/offers", "offers", "", "Offers",
			`{"query":"SELECT * from root where root.resource = \"` + self + `\""}`, 1,
		},
		"offer, azcosmos": {
			"/offers", "offers", "", "Offers",
			`{"query":"SELECT * FROM c WHERE c.offerResourceId = '` + coll + `'"}`, 1,
		},
		"offer of no resource": {
			"/offers", "offers", "", "Offers", `{"query":"SELECT * FROM c WHERE c.offerResourceId = 'none'"}`, 0,
		},
	} {
		r := rest{
			method: "POST", path: tc.path, resourceType: tc.resourceType, link: tc.link,
			headers: map[string]string{"x-ms-documentdb-isquery": "True"}, body: tc.query,
		}
		code, header, body := r.do(t, run)
		require.Equal(t, 200, code, name)
		require.Len(t, body[tc.list], tc.want, name)
		require.Equal(t, []string{"0", "1", "2"}[tc.want], header.Get("x-ms-item-count"), name)
		r.body = `{"query":"SELECT * FROM c ORDER BY c.id"}`
		code, _, body = r.do(t, run)
		require.Equal(t, 400, code)
		require.Contains(t, body["message"], "only queries that filter and project are implemented")
	}
}

func TestWhatIsNotImplementedIsRefusedInWords(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	for path, words := range map[string]string{
		"/dbs/db/colls/logs/sprocs": "Stored procedures", "/dbs/db/colls/logs/triggers/t": "triggers",
		"/dbs/db/colls/logs/udfs":     "user-defined functions",
		"/dbs/db/users/u/permissions": "Users and permissions", "/dbs/db/colls/logs/conflicts": "Conflicts",
		"/dbs/db/colls/logs/operations/partitionkeydelete": "deletion of all items",
	} {
		code, _, body := rest{method: "POST", path: path}.do(t, run)
		require.Equal(t, http.StatusBadRequest, code, path)
		require.Contains(t, body["message"], words)
		require.Contains(t, body["message"], "not implemented by this emulator")
	}
	batch := onDocs("POST",
		map[string]string{
			"x-ms-cosmos-is-batch-request": "True", "x-ms-documentdb-partitionkey": `["1"]`,
		}, "\x81\x01\x02\x03")
	code, _, body := batch.do(t, run)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body["message"], "HybridRow")
}

func TestPatchMayBeABareArray(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	code, _, _ := onDocs("POST", map[string]string{"x-ms-documentdb-partitionkey": `["1"]`}, `{"id":"1"}`).do(t, run)
	require.Equal(t, 201, code)
	code, _, body := onDoc("PATCH", "1", nil, `[{"op":"set","path":"/n","value":7}]`).do(t, run)
	require.Equal(t, 200, code)
	require.EqualValues(t, 7, body["n"])
	for _, wrong := range []string{`[]`, `"set"`, `[{"op":"set","path":"/n"}]`} {
		code, _, _ = onDoc("PATCH", "1", nil, wrong).do(t, run)
		require.Equal(t, 400, code, wrong)
	}
}
