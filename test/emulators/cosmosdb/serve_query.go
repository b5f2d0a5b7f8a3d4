package cosmosdb

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sort"
	"strconv"

	"sqlwriter/test/emulators/cosmosdb/cosmossql"
	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// The gateway's own words (recorded on a real account: azure-sdk-for-go TestCrossPartitionQuery..., and
// xo/dbimp COSMOS.md).
const (
	messageCrossPartition = "The provided cross partition query can not be directly served by the gateway. " +
		"This is a first chance (internal) exception that all newer clients will know how to handle gracefully. " +
		"This exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), then you can safely ignore this message."
	messageNonValueAggregate = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates."
	messageTokenLimit        = "The continuation token limit specified is not large enough to serialize the required attributes into the continuation token. Please provide a higher limit."
	messageCrossDisabled     = "Cross partition query is required but disabled. Please set x-ms-documentdb-query-enablecrosspartition to true, " +
		"specify x-ms-documentdb-partitionkey, or revise your query to avoid this exception."
)

// query answers a query, or the list of all documents.
func (s *Server) query(c *container, req *request) (*response, *apiError) {
	q, params, err := s.parseQuery(req)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	sc, err := c.scope(req)
	if err != nil {
		return nil, err
	}
	if pk, ok := c.pinned(q); ok && sc.prefix == "" {
		sc.limitTo(c, pk)
	}
	if req.op == OpPlan {
		return c.plan(q, sc)
	}
	if err := c.checkServable(q, sc, req); err != nil {
		return nil, err
	}
	run := queryRun{container: c, query: q, scope: sc, emptyEvery: s.opts.EmptyPages}
	if run.limit, err = s.pageLimit(req); err != nil {
		return nil, err
	}
	if err := checkTokenLimit(req); err != nil {
		return nil, err
	}
	run.token, err = readToken(req.header.Get(headerContinuation), c, req.body.Get("query").Text()+params.JSON())
	if err != nil {
		return nil, err
	}
	return run.page()
}

// parseQuery reads the body of a query and binds its parameters.
func (s *Server) parseQuery(req *request) (*cosmossql.Query, jsonval.Value, *apiError) {
	text, params := req.body.Get("query"), req.body.Get("parameters")
	if req.op == OpList {
		text = jsonval.OfString("SELECT * FROM c")
	}
	if text.Kind() != jsonval.String {
		return nil, params, badRequest("The body of a query is an object with the text in 'query'.")
	}
	values := make(map[string]jsonval.Value, params.Len())
	for _, p := range params.Elements() {
		name := p.Get("name").Text()
		if len(name) < 2 || name[0] != '@' {
			return nil, params,
				badRequest(
					"Parameter name '%s' is invalid. Parameter names should be in the format of symbol '@' followed by a valid identifier.", name)
		}
		if _, twice := values[name]; twice {
			return nil, params, badRequest("Specified duplicate parameter name '%s'.", name)
		}
		values[name] = p.Get("value")
	}
	q, err := cosmossql.Parse(text.Text())
	if err == nil {
		err = q.Bind(values, s.opts.Now())
	}
	if err != nil {
		return nil, params, queryError(err)
	}
	return q, params, nil
}

// queryError is the answer to a query text that is refused.
func queryError(err error) *apiError {
	var syntax *cosmossql.Error
	if !errors.As(err, &syntax) {
		return badRequest("%s", err)
	}
	body, jsonErr := json.Marshal(map[string]any{"errors": []any{map[string]any{
		"severity": "Error", "location": map[string]int{"start": syntax.Start, "end": syntax.End},
		"code": syntax.Code, "message": syntax.Message,
	}}})
	if jsonErr != nil {
		return badRequest("%s", err)
	}
	return badRequest("%s", body)
}

// checkServable refuses what the gateway refuses when a query is not limited to one partition key or one
// range, then what this emulator does not implement.
func (c *container) checkServable(q *cosmossql.Query, sc scope, req *request) *apiError {
	if !sc.single && req.op != OpList {
		if !isTrue(req.header.Get(headerCrossPartition)) {
			return badRequest("%s", messageCrossDisabled)
		}
		plan, nonValue := q.GatewayRefusal()
		if nonValue {
			return badRequest("%s", messageNonValueAggregate)
		}
		if plan != "" {
			return &apiError{
				status: http.StatusBadRequest, substatus: substatusCrossPartitionQuery, message: messageCrossPartition,
				additional: `{"emulator":"the query plan of ` + plan + ` is not made here"}`,
			}
		}
	}
	if !c.canOrder(q) {
		return badRequest(
			"The order by query does not have a corresponding composite index that it can be served from.")
	}
	if err := q.Unserved(); err != nil {
		return queryError(err)
	}
	return nil
}

// canOrder reports whether ORDER BY has at most one path, or a composite index of the same paths, all in its directions
// or all in the opposite ones (docs/facts.md F98).
func (c *container) canOrder(q *cosmossql.Query) bool {
	paths, descending := q.OrderBy()
	if len(paths) < 2 {
		return true
	}
	return slices.ContainsFunc(c.props.Get("indexingPolicy").Get("compositeIndexes").Elements(),
		func(index jsonval.Value) bool {
			same, opposite := index.Len() == len(paths), index.Len() == len(paths)
			for i, e := range index.Elements() {
				if !same && !opposite || e.Get("path").Text() != paths[i] {
					return false
				}
				asIs := (e.Get("order").Text() == "descending") == descending[i]
				same, opposite = same && asIs, opposite && !asIs
			}
			return same || opposite
		})
}

// plan answers a request for a query's plan (docs/facts.md F95). A query that only filters and projects, or is limited
// to one partition key, needs none: the plan then says so and names the hashes to ask. TOP alone needs its number, by
// which the client stops (F99). Others are refused.
func (c *container) plan(q *cosmossql.Query, sc scope) (*response, *apiError) {
	if !sc.single {
		construct, nonValue := q.GatewayRefusal()
		if nonValue {
			construct = "GROUP BY or an aggregate"
		}
		if construct != "" && construct != "TOP" {
			return nil,
				badRequest(
					"The plan of a query with %s over partitions is not implemented by this emulator.", construct)
		}
	}
	if err := q.Unserved(); err != nil {
		return nil, queryError(err)
	}
	top := "null"
	if n, ok, err := q.Top(); err != nil {
		return nil, queryError(err)
	} else if ok {
		top = strconv.Itoa(n)
	}
	low, high, point := sc.low, cmp.Or(sc.high, "FF"), sc.epk != ""
	if point {
		low, high = sc.epk, sc.epk
	}
	return newResponse(http.StatusOK,
		fmt.Appendf(nil, `{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None",`+
			`"top":%s,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],"groupByExpressions":[],"groupByAliases":[],`+
			`"aggregates":[],"groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":%t,"hasNonStreamingOrderBy":false},`+
			`"queryRanges":[{"min":"%s","max":"%s","isMinInclusive":true,"isMaxInclusive":%t}]}`, top,
			q.SelectsValue(), low, high, point)), nil
}

// pinned is the partition key that WHERE names with = for every component, which limits a query to it, as in the
// service.
func (c *container) pinned(q *cosmossql.Query) (partitionKey, bool) {
	values := make([]jsonval.Value, len(c.pk.paths))
	for i, p := range c.pk.paths {
		found, ok := q.Constants(p...)
		if !ok || len(found) != 1 {
			return partitionKey{}, false
		}
		values[i] = found[0]
	}
	pk, err := newPartitionKey(values)
	return pk, err == nil
}

// pageLimit reads x-ms-max-item-count: a positive number; none, 0 and -1 (the service chooses) mean the
// server's default.
func (s *Server) pageLimit(req *request) (int, *apiError) {
	header := req.header.Get(headerMaxItemCount)
	if header == "" {
		return s.opts.PageLimit, nil
	}
	n, err := strconv.Atoi(header)
	switch {
	case err != nil || n < -1:
		return 0,
			badRequest(
				"The input PageSize %s is invalid. Ensure to pass a valid page size which must be a positive integer or -1 for a dynamic page size.", header)
	case n <= 0:
		return s.opts.PageLimit, nil
	default:
		return n, nil
	}
}

// checkTokenLimit refuses a limit of continuations, in KB, that none fits. Continuations here are always shorter than 1
// KB.
func checkTokenLimit(req *request) *apiError {
	header := req.header.Get(headerTokenLimit)
	if kb, err := strconv.Atoi(header); header != "" && (err != nil || kb < 1) {
		return badRequest("%s", messageTokenLimit)
	}
	return nil
}

// pageToken is a continuation: where a query goes on. It is valid for the query and the container it was
// made for.
type pageToken struct {
	Container string `json:"c"`
	Query     uint64 `json:"q"`
	// Page is the number of the next page.
	Page int `json:"p"`
	// Low and High bound the range that is read, as it was when its first page was made; After is the number of the
	// last document seen there. After a split the page goes on over the children. High empty is the beginning.
	Low   string `json:"l"`
	High  string `json:"h"`
	After uint64 `json:"a"`
	// Row is the next row of a result that was gathered whole.
	Row int `json:"w"`
}

func readToken(header string, c *container, query string) (pageToken, *apiError) {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(query)) // never fails
	fresh := pageToken{Container: c.rid, Query: sum.Sum64()}
	if header == "" {
		return fresh, nil
	}
	invalid := badRequest("Invalid Continuation Token.")
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return fresh, invalid
	}
	var t pageToken
	if err := json.Unmarshal(text, &t); err != nil || t.Container != fresh.Container || t.Query != fresh.Query ||
		t.Page < 1 || t.Row < 0 {
		return fresh, invalid
	}
	return t, nil
}

func (t pageToken) String() string {
	t.Page++
	text, err := json.Marshal(t)
	if err != nil {
		return "" // a struct of numbers and text always marshals
	}
	return base64.StdEncoding.EncodeToString(text)
}

// queryRun makes one page of a query; the container's lock is held.
type queryRun struct {
	container  *container
	query      *cosmossql.Query
	scope      scope
	limit      int
	emptyEvery int
	token      pageToken

	rows  [][]byte
	bytes int
	// charge is that of the documents loaded.
	charge float64
}

// load counts a document that a row is made of.
func (r *queryRun) load(size int) { r.charge += rowCharge + loaded(size) }

func (r *queryRun) page() (*response, *apiError) {
	switch {
	case r.emptyEvery > 1 && r.token.Page%r.emptyEvery == 0:
		return r.response(true), nil
	case r.query.Collected():
		return r.collectedPage()
	}
	ranges := r.ranges()
	if len(ranges) == 0 {
		return r.response(false), nil
	}
	if more := r.scan(ranges); more {
		return r.response(true), nil
	}
	// A page never holds rows of two ranges, so a range without a match is an empty page.
	r.token.Low, r.token.After = r.token.High, 0
	rest := r.from(r.token.High)
	r.token.High = ""
	return r.response(len(rest) > 0), nil
}

// ranges are those to read for this page: one, or all that came from it by splits since its first page was made.
func (r *queryRun) ranges() []*pkRange {
	out := r.from(r.token.Low)
	if len(out) > 0 && r.token.High == "" {
		r.token.High = out[0].high
	}
	return slices.DeleteFunc(out, func(rng *pkRange) bool { return rng.low >= r.token.High })
}

// from is the part of the scope's ranges that begins at a bound.
func (r *queryRun) from(bound string) []*pkRange {
	return slices.DeleteFunc(slices.Clone(r.scope.ranges), func(rng *pkRange) bool { return rng.low < bound })
}

func (r *queryRun) response(more bool) *response {
	resp := newResponse(http.StatusOK, listBody(r.container.rid, "Documents", r.rows))
	resp.items = len(r.rows)
	resp.charge = pageCharge + r.charge
	if more {
		resp.continuation = r.token.String()
	}
	if len(r.scope.ranges) > 0 {
		resp.session = sessionToken(r.scope.ranges[0])
	}
	return resp
}

// scan adds the rows of ranges from the token on; more is true when the page is full before the end.
func (r *queryRun) scan(ranges []*pkRange) (more bool) {
	slots := r.candidates(ranges)
	from := sort.Search(len(slots), func(i int) bool { return slots[i].number > r.token.After })
	for _, s := range slots[from:] {
		if !r.selects(s.doc) {
			continue
		}
		if len(r.rows) >= r.limit || r.bytes >= maxPageBytes {
			return true
		}
		r.token.After = s.number
		r.load(len(s.doc.raw))
		if row := r.query.Project(s.doc.val); !row.IsUndefined() {
			text := row.AppendJSON(nil)
			r.rows, r.bytes = append(r.rows, text), r.bytes+len(text)
		}
	}
	return false
}

func (r *queryRun) selects(d *document) bool {
	c := r.container
	return d != nil && !c.ttl.expired(d, c.now()) && r.scope.holds(d) && r.query.Matches(d.val)
}

// candidates are the documents of ranges that can match, in order of creation. A query that names ids looks them up in
// the index, as the service does, instead of reading everything.
func (r *queryRun) candidates(ranges []*pkRange) []*slot {
	c := r.container
	ids, ok := r.query.Constants("id")
	if !ok {
		if len(ranges) == 1 {
			return ranges[0].slots
		}
		var out []*slot
		for _, rng := range ranges {
			out = append(out, rng.slots...)
		}
		slices.SortFunc(out, byNumber)
		return out
	}
	var out []*slot
	for _, id := range ids {
		if id.Kind() != jsonval.String {
			continue
		}
		for _, s := range c.byID[id.Text()] {
			if slices.Contains(ranges, c.rangeOf(s.doc.epk)) {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, byNumber)
	return slices.Compact(out)
}

func byNumber(a, b *slot) int { return cmp.Compare(a.number, b.number) }

// collectedPage cuts a page out of a result that must be gathered whole (COUNT, ORDER BY, TOP, OFFSET).
func (r *queryRun) collectedPage() (*response, *apiError) {
	if ranges := r.scope.ranges; r.scope.epk == "" && len(ranges) == 1 {
		if r.token.High != "" && (r.token.Low != ranges[0].low || r.token.High != ranges[0].high) {
			return nil,
				badRequest(
					"Invalid Continuation Token: the rows of ORDER BY, TOP, OFFSET or COUNT are those of a range that was split.")
		}
		r.token.Low, r.token.High = ranges[0].low, ranges[0].high
	}
	var docs []jsonval.Value
	for _, s := range r.candidates(r.scope.ranges) {
		if r.selects(s.doc) {
			docs = append(docs, s.doc.val)
			r.load(len(s.doc.raw))
		}
	}
	rows, err := r.query.Collect(docs)
	if err != nil {
		return nil, queryError(err)
	}
	from := min(r.token.Row, len(rows))
	for _, row := range rows[from:] {
		if len(r.rows) >= r.limit || r.bytes >= maxPageBytes {
			r.token.Row = from + len(r.rows)
			return r.response(true), nil
		}
		text := row.AppendJSON(nil)
		r.rows, r.bytes = append(r.rows, text), r.bytes+len(text)
	}
	return r.response(false), nil
}
