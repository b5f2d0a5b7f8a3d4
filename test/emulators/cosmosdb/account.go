package cosmosdb

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// account answers GET /: the account with itself as its only region, so that azcosmos sends everything
// here.
func (s *Server) account(req *request) *response {
	endpoint := req.scheme + "://" + req.host + "/"
	body := fmt.Appendf(nil,
		`{"_self":"","id":"emulator","_rid":"emulator","media":"//media/","addresses":"//addresses/","_dbs":"//dbs/",`+
			`"writableLocations":[{"name":"Local","databaseAccountEndpoint":%[1]s}],"readableLocations":[{"name":"Local","databaseAccountEndpoint":%[1]s}],`+
			`"enableMultipleWriteLocations":false,"userReplicationPolicy":{"asyncReplication":false,"minReplicaSetSize":3,"maxReplicasetSize":4},`+
			`"userConsistencyPolicy":{"defaultConsistencyLevel":"Session"},"systemReplicationPolicy":{"minReplicaSetSize":3,"maxReplicasetSize":4},`+
			`"readPolicy":{"primaryReadCoefficient":1,"secondaryReadCoefficient":1},"queryEngineConfiguration":"{\"maxSqlQueryInputLength\":524288}"}`,
		jsonval.OfString(endpoint).JSON())
	return newResponse(http.StatusOK, body)
}

// listBody is the form of every list the service answers.
func listBody(rid, name string, entries [][]byte) []byte {
	body := fmt.Appendf(nil, `{"_rid":%s,"%s":[`, jsonval.OfString(rid).JSON(), name)
	for i, e := range entries {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e...)
	}
	return fmt.Appendf(body, `],"_count":%d}`, len(entries))
}

// sortedKeys makes the order of lists the same each time.
func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (d *database) json() []byte {
	return jsonval.OfObject(
		[]string{"id", "_rid", "_self", "_etag", "_colls", "_users", "_ts"},
		[]jsonval.Value{
			jsonval.OfString(d.id), jsonval.OfString(d.rid), jsonval.OfString("dbs/" + d.rid + "/"),
			jsonval.OfString(d.etag),
			jsonval.OfString("colls/"), jsonval.OfString("users/"), jsonval.OfInt(d.ts),
		}).AppendJSON(nil)
}

// serveDatabase answers requests on /dbs and /dbs/{id}.
func (s *Server) serveDatabase(req *request) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case req.databaseID == "" && req.method == http.MethodPost && !isQueryRequest(req.header):
		return s.createDatabase(req)
	case req.databaseID == "" && (req.method == http.MethodGet || req.method == http.MethodPost):
		var entries [][]byte
		for _, id := range sortedKeys(s.databases) {
			entries = append(entries, s.databases[id].json())
		}
		return s.list(req, "", "Databases", entries)
	}
	db := s.databases[req.databaseID]
	switch {
	case db == nil:
		return nil, notFound()
	case req.method == http.MethodGet:
		resp := newResponse(http.StatusOK, db.json())
		resp.etag = db.etag
		return resp, nil
	case req.method == http.MethodDelete && req.databaseID != "":
		delete(s.databases, db.id)
		return newResponse(http.StatusNoContent, nil), nil
	default:
		return nil, &apiError{status: http.StatusMethodNotAllowed, message: "The requested verb is not supported."}
	}
}

func isQueryRequest(h http.Header) bool {
	return isTrue(h.Get(headerIsQuery)) || isTrue(h.Get(headerQuery)) ||
		strings.HasPrefix(h.Get("Content-Type"), "application/query+json")
}

// list answers a list of databases, containers or offers: all of it, or what the query of the request selects.
func (s *Server) list(req *request, rid, name string, entries [][]byte) (*response, *apiError) {
	if req.method == http.MethodPost {
		q, _, err := s.parseQuery(req)
		if err != nil {
			return nil, err
		}
		if q.Collected() || q.Unserved() != nil {
			return nil,
				badRequest(
					"Over %s only queries that filter and project are implemented by this emulator.",
					strings.ToLower(name))
		}
		var rows [][]byte
		for _, e := range entries {
			v, parseErr := jsonval.Parse(string(e))
			if parseErr != nil {
				return nil, badRequest("%s", parseErr)
			}
			if row := q.Project(v); q.Matches(v) && !row.IsUndefined() {
				rows = append(rows, row.AppendJSON(nil))
			}
		}
		entries = rows
	}
	resp := newResponse(http.StatusOK, listBody(rid, name, entries))
	resp.items = len(entries)
	return resp, nil
}

func checkName(v jsonval.Value) *apiError {
	name := v.Text()
	if v.Kind() != jsonval.String || name == "" || len(name) > 255 || strings.ContainsAny(name, `/\?#`) ||
		strings.HasSuffix(name, " ") {
		return badRequest(
			`The input name '%s' is invalid. Ensure to provide a unique non-empty string less than '255' characters without '/', '\', '?', '#'.`, name)
	}
	return nil
}

func (s *Server) createDatabase(req *request) (*response, *apiError) {
	id := req.body.Get("id")
	if err := checkName(id); err != nil {
		return nil, err
	}
	if s.databases[id.Text()] != nil {
		return nil, conflict()
	}
	db := &database{
		id: id.Text(), rid: encodeRID(binary.BigEndian.AppendUint32(nil, newRID())), etag: newETag(),
		ts: s.opts.Now().Unix(), containers: map[string]*container{},
	}
	s.databases[db.id] = db
	resp := newResponse(http.StatusCreated, db.json())
	resp.etag = db.etag
	return resp, nil
}

// serveContainer answers requests on /dbs/{db}/colls and /dbs/{db}/colls/{id}.
func (s *Server) serveContainer(req *request) (*response, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	db := s.databases[req.databaseID]
	if db == nil {
		return nil, notFound()
	}
	req.contentPath, req.altContentPath = db.rid, "dbs/"+db.id
	switch {
	case req.containerID == "" && req.method == http.MethodPost && !isQueryRequest(req.header):
		return s.createContainer(db, req)
	case req.containerID == "" && (req.method == http.MethodGet || req.method == http.MethodPost):
		var entries [][]byte
		for _, id := range sortedKeys(db.containers) {
			entries = append(entries, db.containers[id].json())
		}
		return s.list(req, db.rid, "DocumentCollections", entries)
	}
	c := db.containers[req.containerID]
	switch {
	case c == nil:
		return nil, notFound()
	case req.method == http.MethodGet:
		return c.describe(http.StatusOK), nil
	case req.method == http.MethodPut:
		return c.replaceProps(req)
	case req.method == http.MethodDelete && req.containerID != "":
		delete(db.containers, c.id)
		return newResponse(http.StatusNoContent, nil), nil
	default:
		return nil, &apiError{status: http.StatusMethodNotAllowed, message: "The requested verb is not supported."}
	}
}

func (s *Server) createContainer(db *database, req *request) (*response, *apiError) {
	id := req.body.Get("id")
	if err := checkName(id); err != nil {
		return nil, err
	}
	if db.containers[id.Text()] != nil {
		return nil, conflict()
	}
	dbRID, err := decodeRID(db.rid)
	if err != nil {
		return nil, badRequest("The database has a damaged resource id.")
	}
	rid := encodeRID(binary.BigEndian.AppendUint32(dbRID, newRID()|1<<31))
	c, apiErr := s.newContainer(db, id.Text(), rid, req.body)
	if apiErr != nil {
		return nil, apiErr
	}
	c.ranges = newRanges(c.pk, s.opts.Ranges)
	c.etag, c.ts = newETag(), s.opts.Now().Unix()
	db.containers[c.id] = c
	return c.describe(http.StatusCreated), nil
}

// newContainer makes a container without ranges from its definition; it is not yet in its database.
func (s *Server) newContainer(db *database, id, rid string, props jsonval.Value) (*container, *apiError) {
	pk, err := parsePKDefinition(props.Get("partitionKey"))
	if err != nil {
		return nil, err
	}
	c := &container{
		id: id, rid: rid, dbID: db.id, dbRID: db.rid, pk: pk, now: s.opts.Now,
		slots: map[string]*slot{}, byID: map[string][]*slot{},
	}
	return c, c.setProps(props)
}

// setProps keeps a container's definition; kind and version of the partition key are made explicit, as
// the service answers them.
func (c *container) setProps(props jsonval.Value) *apiError {
	if v := props.Get("uniqueKeyPolicy"); v.Get("uniqueKeys").Len() > 0 {
		return badRequest("Unique keys are not implemented by this emulator.")
	}
	ttl := ttlSetting{}
	if v := props.Get("defaultTtl"); !v.IsUndefined() && v.Kind() != jsonval.Null {
		n, ok := v.Int()
		if !ok || n == 0 || n < -1 {
			return badRequest("The input ttl '%s' is invalid.", v.JSON())
		}
		ttl = ttlSetting{on: true, seconds: n}
	}
	kind := "Hash"
	if c.pk.multi {
		kind = "MultiHash"
	}
	key := props.Get("partitionKey").With("kind", jsonval.OfString(kind)).With("version",
		jsonval.OfInt(int64(c.pk.version)))
	if props.Get("indexingPolicy").IsUndefined() {
		policy, err := jsonval.Parse(
			`{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}`)
		if err != nil {
			return badRequest("indexing policy: %s", err)
		}
		props = props.With("indexingPolicy", policy)
	}
	c.ttl = ttl
	c.props = props.Without(systemMembers()...).With("partitionKey", key)
	return nil
}

func (c *container) json() []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.props.
		With("_rid", jsonval.OfString(c.rid)).With("_ts", jsonval.OfInt(c.ts)).
		With("_self", jsonval.OfString("dbs/"+c.dbRID+"/colls/"+c.rid+"/")).With("_etag", jsonval.OfString(c.etag)).
		With("_docs", jsonval.OfString("docs/")).With("_sprocs", jsonval.OfString("sprocs/")).
		With("_triggers", jsonval.OfString("triggers/")).With("_udfs", jsonval.OfString("udfs/")).
		With("_conflicts", jsonval.OfString("conflicts/")).AppendJSON(nil)
}

func (c *container) describe(status int) *response {
	resp := newResponse(status, c.json())
	resp.etag = c.etag
	return resp
}

// replaceProps changes a container's definition; the partition key cannot change.
func (c *container) replaceProps(req *request) (*response, *apiError) {
	pk, err := parsePKDefinition(req.body.Get("partitionKey"))
	if err != nil {
		return nil, err
	}
	if req.body.Get("id").Text() != c.id || pk.version != c.pk.version || pk.multi != c.pk.multi ||
		!slices.EqualFunc(pk.paths, c.pk.paths, slices.Equal) {
		return nil, badRequest("The id and the partition key of a container cannot be changed.")
	}
	if m := req.header.Get("If-Match"); m != "" && m != "*" && m != c.etag {
		return nil, preconditionFailed()
	}
	c.mu.Lock()
	err = c.setProps(req.body)
	if err == nil {
		c.etag, c.ts = newETag(), c.now().Unix()
	}
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.describe(http.StatusOK), nil
}

// pkRanges answers GET pkranges, a feed: with the etag of an earlier answer a client gets the ranges made since, or
// 304.
func (c *container) pkRanges(req *request) *response {
	c.mu.RLock()
	defer c.mu.RUnlock()
	known, err := strconv.Atoi(strings.Trim(req.header.Get("If-None-Match"), `"`))
	if err != nil {
		known = 0
	}
	var entries [][]byte
	for _, r := range c.ranges {
		if r.index < known {
			continue
		}
		parents := make([]jsonval.Value, len(r.parents))
		for i, p := range r.parents {
			parents[i] = jsonval.OfString(p)
		}
		rid := c.docRID(uint64(r.index)<<32 | 2)
		entries = append(entries, fmt.Appendf(nil,
			`{"_rid":"%[1]s","id":"%[2]s","_etag":%[3]s,"minInclusive":"%[4]s","maxExclusive":"%[5]s","ridPrefix":%[2]s,`+
				`"_self":"dbs/%[6]s/colls/%[7]s/pkranges/%[1]s/","throughputFraction":%[8]g,"status":"online","parents":%[11]s,"ownedArchivalPKRangeIds":[],"_ts":%[9]d,"lsn":%[10]d}`,
			rid, r.id(), jsonval.OfString(c.etag).JSON(), r.low, r.high, c.dbRID, c.rid,
			1/float64(len(c.ranges)), c.ts, r.lsn,
			jsonval.OfArray(parents).JSON()))
	}
	resp := newResponse(http.StatusOK, listBody(c.rid, "PartitionKeyRanges", entries))
	if len(entries) == 0 {
		resp = newResponse(http.StatusNotModified, nil)
	}
	resp.etag, resp.items = fmt.Sprintf(`"%d"`, c.nextRange()), len(entries)
	return resp
}
