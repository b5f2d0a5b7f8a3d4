package cosmos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

var _ commit.Finder = (*Container)(nil)

// Find implements commit.Finder. It returns the service's pages unchanged, also empty ones; one has at most 4 MB.
//
// Its continuation is the service's after a mark of the query. The service does not promise to refuse the continuation
// of another query, and would continue at a meaningless place ("you'd either get an error or incorrect results",
// azure-cosmos-dotnet-v2 issue 252). After an upgrade that changes the query, a search therefore begins again. The
// service's continuation is opaque, must fit into a header and has up to 16 KB (docs/facts.md F109).
func (c *Container) Find(ctx context.Context, q commit.Query, continuation string) (found commit.Page, err error) {
	op := operation{"cosmos: find", onContainer}
	from, params, err := findQuery(op, q)
	if err != nil {
		return found, err
	}
	query := "SELECT " + project(q.Members) + from
	mark, err := markOf(op, query, params)
	if err != nil {
		return found, err
	}
	token, ours := strings.CutPrefix(continuation, mark)
	if continuation != "" && (!ours || token == "" || strings.ContainsFunc(token, notInHeader)) {
		return found, fault.New(fault.Document, op.name, "continuation", "the continuation belongs to another search")
	}
	read, err := c.page(ctx, op, query, params, int32(min(q.Size, math.MaxInt32)), token) //nolint:gosec // bounded
	if token != "" && refusesToken(err) {
		return found,
			fault.Wrap(fault.Document, op.name, "continuation", "the service does not know the continuation", err)
	}
	if err != nil {
		return found, err
	}
	found = commit.Page{Documents: make([]invoice.Projection, len(read.rows)), Charge: read.charge}
	for i, row := range read.rows {
		found.Documents[i] = invoice.Projection(row)
	}
	if read.next != "" {
		found.Next = mark + read.next
	}
	return found, nil
}

// The members that several conditions name.
const (
	mainLine    = "c.invoice_details_from_rpa.IVCE_DTL_UID"
	duplicates  = `c["post-processing"].duplicate_detail_uids`
	isDue       = "(NOT IS_NUMBER(c.sql_writer.retry_after) OR c.sql_writer.retry_after <= @now OR c.sql_writer.retry_after > @tomorrow)"
	isPutOff    = "(IS_STRING(c.sql_writer.last_error_kind) AND c.sql_writer.last_error_kind IN (%s))"
	isPostponed = "(IS_BOOL(c.sql_writer.postponed) AND c.sql_writer.postponed = true)"
)

// findQuery makes a query without its SELECT clause. It only filters and projects, because the gateway serves no more
// over partitions (docs/facts.md F63). The caller sorts and limits.
//
// The index serves equality, IN, ranges and ARRAY_CONTAINS (F110). LOWER(c.sql_writer.status) = 'pending' would find
// every spelling, but reads every document ("This function doesn't use the index", the vendor's page on LOWER). The
// query therefore names each spelling of commit.Spellings.
func findQuery(op operation, q commit.Query) (string, []Param, error) {
	c := &conditions{}
	if q.SysName != "" {
		c.equal("c.request_details.sys_name", "@sys_name", q.SysName)
	}
	switch {
	case q.Window != "":
		if !c.window(q.Window, q.Times) {
			return "", nil, fault.New(fault.Internal, op.name, fault.CodeBug, "there is no window %q", q.Window)
		}
	case len(q.IDs) > 0:
		c.and("c.id IN (" + c.addAll("@id", anyOf(q.IDs)) + ")")
	default:
		c.filters(q)
	}
	return " FROM c WHERE " + strings.Join(c.all, " AND "), c.params, nil
}

// filters adds what any list may ask for.
func (c *conditions) filters(q commit.Query) {
	c.and("c._ts >= " + c.add("@from", q.From))
	c.and("c._ts < " + c.add("@to", q.To))
	if len(q.Statuses) > 0 {
		c.and(c.status(q.Statuses...))
	}
	if q.Kind != "" {
		c.equal("c.sql_writer.last_error_kind", "@kind", q.Kind)
	}
	if q.Code != "" {
		c.equal("c.sql_writer.last_error_code", "@code", q.Code)
	}
	if q.Request != "" {
		c.and("c.request_details.id IN (" + c.addAll("@request", q.Requests()) + ")")
	}
	if q.Line > 0 {
		names := c.addAll("@line", q.Lines())
		either := []string{mainLine + " IN (" + names + ")"}
		for name := range strings.SplitSeq(names, ", ") {
			either = append(either, "ARRAY_CONTAINS("+duplicates+", "+name+")")
		}
		c.and("(" + strings.Join(either, " OR ") + ")")
	}
}

// window adds the conditions of a window; false if there is none of this name. A comparison with a missing member or
// another type is undefined, and so is its NOT. Every negated condition therefore checks the type first. NOT IS_DEFINED
// is not used, because it scans (docs/facts.md F66).
func (c *conditions) window(w commit.Window, at commit.WindowTimes) bool {
	if w == commit.Orphans {
		pending := c.status(invoice.Pending) + " AND c._ts < " + c.add("@left", at.LeftBefore)
		processing := c.status(invoice.Processing) + " AND c._ts < " + c.add("@old", at.OldWriterBefore)
		c.and("((" + pending + ") OR (" + processing + "))")
		return true
	}
	c.and(c.status(invoice.RetryScheduled))
	c.add("@now", at.Now)
	c.add("@tomorrow", at.Now+int64(invoice.MostAhead/time.Second))
	putOff := fmt.Sprintf(isPutOff, c.addAll("@kind", anyOf(commit.PutOffKinds())))
	switch w {
	case commit.PutOff:
		c.and(putOff + " AND " + isDue)
	case commit.Blamed:
		early := isPostponed + " AND c._ts < " + c.add("@applied", at.AppliedBefore)
		c.and("NOT " + putOff + " AND (" + isDue + " OR " + early + ")")
	default:
		return false
	}
	return true
}

// conditions are what a document must meet, and the parameters that they name.
type conditions struct {
	all    []string
	params []Param
}

func (c *conditions) and(condition string) { c.all = append(c.all, condition) }

// equal adds a condition of equality.
func (c *conditions) equal(member, name, value string) { c.and(member + " = " + c.add(name, value)) }

// status gives the condition for statuses in all their spellings.
func (c *conditions) status(statuses ...invoice.Status) string {
	var texts []any
	for _, status := range statuses {
		texts = append(texts, anyOf(commit.Spellings(status))...)
	}
	return "c.sql_writer.status IN (" + c.addAll(fmt.Sprint("@status", len(c.params), "_"), texts) + ")"
}

// add adds a parameter and gives its name.
func (c *conditions) add(name string, value any) string {
	c.params = append(c.params, Param{Name: name, Value: value})
	return name
}

// addAll adds parameters and gives their names with commas between them.
func (c *conditions) addAll(name string, values []any) string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = c.add(fmt.Sprint(name, i), value)
	}
	return strings.Join(names, ", ")
}

// project gives a SELECT list for members (commit.Query.Members): c["id"], {"status": c["sql_writer"]["status"]} AS
// sql_writer.
func project(members []string) string {
	if len(members) == 0 {
		return "*"
	}
	var tops []string
	within := map[string][]string{}
	for _, member := range members {
		top, path, nested := strings.Cut(member, ".")
		if _, known := within[top]; !known {
			tops, within[top] = append(tops, top), nil
		}
		if nested {
			within[top] = append(within[top], property("c["+strconv.Quote(top)+"]", path))
		}
	}
	for i, top := range tops {
		tops[i] = "c[" + strconv.Quote(top) + "]"
		if len(within[top]) > 0 {
			tops[i] = "{" + strings.Join(within[top], ", ") + "} AS " + top
		}
	}
	return strings.Join(tops, ", ")
}

// property gives a member of an object for an object of the SELECT list: "status": c["sql_writer"]["status"].
func property(object, path string) string {
	name, rest, nested := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[0]")
	value := object + "[" + strconv.Quote(name) + "]"
	if list {
		value += "[0]"
	}
	if nested {
		value = "{" + property(value, rest) + "}"
	}
	if list {
		value = "[" + value + "]"
	}
	return strconv.Quote(name) + ": " + value
}

// markOf gives the mark of a query and its parameters.
func markOf(op operation, query string, params []Param) (string, error) {
	text, err := json.Marshal(struct {
		Query  string
		Params []Param
	}{query, params})
	if err != nil {
		return "", fault.Wrap(fault.Internal, op.name, fault.CodeBug, "the query cannot be written as JSON", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]) + ":", nil
}

// notInHeader reports characters that net/http refuses in a header. Its error would look like a network failure.
func notInHeader(r rune) bool { return r < ' ' || r == 0x7f }

// refusesToken reports whether the service refused a query because of its continuation. The service answers 400 and
// only the text gives the reason ("... malformed. Re-run the query without it", azure-cosmos-dotnet-v3 issue 3416).
// Every 400 but 1004, which concerns the query, therefore counts. Any other problem of the query shows up again when
// the search begins again.
func refusesToken(err error) bool {
	return statusOf(err) == http.StatusBadRequest && fault.CodeOf(err) != "400/1004"
}
