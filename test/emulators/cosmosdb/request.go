package cosmosdb

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// Op is the kind of a request, by which it is counted and by which faults choose it.
type Op string

// The kinds. ReadMany is a query with a range header, which azcosmos sends for ReadManyItems. Plan asks for the plan of
// a query.
const (
	OpAccount   Op = "account"
	OpDatabase  Op = "database"
	OpContainer Op = "container"
	OpOffer     Op = "offer"
	OpRanges    Op = "pkranges"
	OpRead      Op = "read"
	OpCreate    Op = "create"
	OpUpsert    Op = "upsert"
	OpReplace   Op = "replace"
	OpPatch     Op = "patch"
	OpDelete    Op = "delete"
	OpBatch     Op = "batch"
	OpQuery     Op = "query"
	OpReadMany  Op = "readmany"
	OpPlan      Op = "plan"
	OpList      Op = "list"
	OpFeed      Op = "feed"
)

// Request headers (azcosmos cosmos_http_constants.go; REST reference "Common request headers").
const (
	headerPartitionKey   = "X-Ms-Documentdb-Partitionkey"
	headerRangeID        = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerStartEPK       = "X-Ms-Start-Epk"
	headerEndEPK         = "X-Ms-End-Epk"
	headerIsUpsert       = "X-Ms-Documentdb-Is-Upsert"
	headerIsBatch        = "X-Ms-Cosmos-Is-Batch-Request"
	headerBatchAtomic    = "X-Ms-Cosmos-Batch-Atomic"
	headerIsQuery        = "X-Ms-Documentdb-Isquery"
	headerQuery          = "X-Ms-Documentdb-Query"
	headerIsPlan         = "X-Ms-Cosmos-Is-Query-Plan-Request"
	headerCrossPartition = "X-Ms-Documentdb-Query-Enablecrosspartition"
	headerMaxItemCount   = "X-Ms-Max-Item-Count"
	headerTokenLimit     = "X-Ms-Documentdb-Responsecontinuationtokenlimitinkb" //nolint:gosec // a name, no credential
	headerContinuation   = "X-Ms-Continuation"
	headerFeedFormat     = "X-Ms-Cosmos-Changefeed-Wire-Format-Version"
	headerActivityID     = "X-Ms-Activity-Id"
)

// maxBody is the most a request may carry; a document's own limit is MaxDocumentBytes.
const maxBody = 4 << 20

// maxDrained is how much of a request that is too large is still read before it is answered.
const maxDrained = 64 << 20

// hybridRow is the first byte of a batch in the binary form of the .NET SDK (HybridRow, version 1).
const hybridRow = 0x81

// request is an HTTP request as the server sees it.
type request struct {
	op     Op
	method string
	header http.Header
	host   string
	scheme string

	databaseID, containerID, documentID string
	offerID                             string
	// byRID is set when the address has resource ids instead of names; resolve replaces them.
	byRID       bool
	documentRID string

	// contentPath and altContentPath name what holds the resource, by resource id and by names: the container of a
	// document, the database of a container.
	contentPath, altContentPath string

	// resourceType and resourceLink are what the signature is made over.
	resourceType, resourceLink string

	body       jsonval.Value // Undefined when there is none
	activityID string
}

// newRequest reads and routes a request. The request is never nil, so that an error can be answered.
func newRequest(r *http.Request) (*request, *apiError) {
	req := &request{
		method: r.Method, header: r.Header, host: r.Host, scheme: "http", activityID: r.Header.Get(headerActivityID),
	}
	if r.TLS != nil {
		req.scheme = "https"
	}
	if !guid.MatchString(req.activityID) {
		req.activityID = newGUID()
	}
	if err := req.route(r.URL); err != nil {
		return req, err
	}
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			// The rest is read too, or the client would see its connection reset instead of 413.
			_, _ = io.CopyN(io.Discard, r.Body, maxDrained)
			return req, tooLarge()
		}
		return req, badRequest("The request body could not be read.")
	}
	return req, req.parseBody(text)
}

func (req *request) parseBody(text []byte) *apiError {
	if req.op == OpCreate || req.op == OpUpsert || req.op == OpReplace || req.op == OpPatch || req.op == OpBatch {
		if len(text) > MaxDocumentBytes {
			return tooLarge()
		}
	} else if len(text) == 0 {
		return nil
	}
	if req.op == OpBatch && len(text) > 0 && text[0] == hybridRow {
		return badRequest("A batch in HybridRow, the binary form of the .NET SDK, is not implemented by this emulator.")
	}
	v, err := jsonval.Parse(string(text))
	if err != nil {
		return badRequest("The request payload is invalid. Ensure to provide a valid request payload: %s.", err)
	}
	req.body = v
	if req.op == OpCreate || req.op == OpUpsert {
		req.documentID = v.Get("id").Text()
	}
	return nil
}

// route reads the address. Segments are unescaped one by one, so that an escaped slash stays in its id.
func (req *request) route(u *url.URL) *apiError {
	var segments []string
	for part := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		s, err := url.PathUnescape(part)
		if err != nil {
			return badRequest("Request url is invalid.")
		}
		segments = append(segments, s)
	}
	if len(segments) == 1 && segments[0] == "" {
		req.op = OpAccount
		return req.allow(http.MethodGet)
	}
	names := []struct {
		word string
		id   *string
	}{{"dbs", &req.databaseID}, {"colls", &req.containerID}, {"docs", &req.documentID}}
	if segments[0] == "offers" {
		names[0].word, names[0].id = "offers", &req.offerID
		names = names[:1]
	}
	last := len(segments)
	if last == 5 && segments[4] == "pkranges" {
		names[2].word = "pkranges"
	}
	for i, s := range segments {
		if what := unserved(s); i%2 == 0 && i > 0 && what != "" {
			return badRequest("%s are not implemented by this emulator.", what)
		}
		if i/2 >= len(names) || i%2 == 0 && s != names[i/2].word {
			return badRequest("Request url is invalid.")
		}
		if i%2 == 1 {
			*names[i/2].id = s
		}
	}
	req.resourceType = segments[(last-1)/2*2]
	req.resourceLink = strings.Join(segments[:last/2*2], "/")
	if isDatabaseRID(req.databaseID) { // signed over the last id alone, in lower case
		req.byRID, req.resourceLink = true, strings.ToLower(segments[last/2*2-1])
		req.documentRID, req.documentID = req.documentID, ""
	}
	return req.choose(req.resourceType, last%2 == 1)
}

// choose finds the kind of the request; feed is an address that ends with the type instead of an id.
func (req *request) choose(resourceType string, feed bool) *apiError {
	switch resourceType {
	case "offers":
		req.op = OpOffer
		if !feed { // a resource id signs in lower case, without its type
			req.resourceLink = strings.ToLower(req.offerID)
		}
		return req.allow(http.MethodGet, http.MethodPost, http.MethodPut)
	case "dbs":
		req.op = OpDatabase
		return req.allow(http.MethodGet, http.MethodPost, http.MethodDelete)
	case "colls":
		req.op = OpContainer
		return req.allow(http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete)
	case "pkranges":
		req.op = OpRanges
		return req.allow(http.MethodGet)
	}
	if !feed {
		byMethod := map[string]Op{
			http.MethodGet: OpRead, http.MethodPut: OpReplace, http.MethodPatch: OpPatch, http.MethodDelete: OpDelete,
		}
		req.op = byMethod[req.method]
		return req.allow(http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete)
	}
	h := req.header
	switch {
	case req.method == http.MethodGet && h.Get("A-Im") != "":
		req.op = OpFeed
	case req.method == http.MethodGet:
		req.op = OpList
	case isTrue(h.Get(headerIsBatch)):
		req.op = OpBatch
	case isTrue(h.Get(headerIsPlan)):
		req.op = OpPlan
	case isQueryRequest(h):
		req.op = OpQuery
		if h.Get(headerRangeID) != "" {
			req.op = OpReadMany
		}
	case isTrue(h.Get(headerIsUpsert)):
		req.op = OpUpsert
	default:
		req.op = OpCreate
	}
	return req.allow(http.MethodGet, http.MethodPost)
}

// unserved names, in words, what the service has under a database or container and this emulator has not.
func unserved(segment string) string {
	switch segment {
	case "sprocs", "triggers", "udfs":
		return "Stored procedures, triggers and user-defined functions"
	case "users", "permissions":
		return "Users and permissions"
	case "conflicts", "attachments":
		return "Conflicts and attachments"
	case "operations":
		return "Operations over a whole container, as the deletion of all items of a partition key,"
	}
	return ""
}

// guid is the form that the SDKs parse activity ids by.
var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (req *request) allow(methods ...string) *apiError {
	for _, m := range methods {
		if m == req.method {
			return nil
		}
	}
	return &apiError{status: http.StatusMethodNotAllowed, message: "The requested verb is not supported."}
}

func isTrue(header string) bool { return strings.EqualFold(header, "true") }

// partitionKey reads the header; ok is false when there is none.
func (req *request) partitionKey() (pk partitionKey, ok bool, err *apiError) {
	text := req.header.Get(headerPartitionKey)
	if text == "" {
		return partitionKey{}, false, nil
	}
	pk, err = parsePartitionKey(text)
	return pk, true, err
}
