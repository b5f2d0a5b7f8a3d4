package cosmosdb

import (
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

// separateMetadata is the one value of x-ms-cosmos-changefeed-wire-format-version that SDKs send.
const separateMetadata = "2021-09-15"

// changeFeed answers GET docs with A-IM: the latest versions of the documents of one range that changed
// after the continuation, in LSN order (REST reference "List documents", section on the change feed;
// "Change feed modes": latest version mode has neither deletes nor intermediate versions).
//
// With x-ms-cosmos-changefeed-wire-format-version a row is the document with its metadata beside it (docs/facts.md
// F100).
//
// If-None-Match is the etag of the answer before: none starts at the beginning (or at If-Modified-Since),
// * starts now. 304 means nothing new. The documents of one batch are never divided.
func (s *Server) changeFeed(c *container, req *request) (*response, *apiError) {
	if !strings.EqualFold(req.header.Get("A-Im"), "Incremental feed") {
		return nil,
			badRequest(
				"A-IM '%s' is not implemented by this emulator; there is only 'Incremental feed'.",
				req.header.Get("A-Im"))
	}
	separate := req.header.Get(headerFeedFormat)
	if separate != "" && separate != separateMetadata {
		return nil, badRequest("The change feed's format '%s' is not implemented by this emulator.", separate)
	}
	limit, err := s.pageLimit(req)
	if err != nil {
		return nil, err
	}
	since, err := modifiedSince(req.header.Get("If-Modified-Since"))
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	scope, err := c.scope(req)
	if err != nil {
		return nil, err
	}
	if len(scope.ranges) != 1 {
		return nil,
			badRequest(
				"The change feed is read range by range: x-ms-documentdb-partitionkeyrangeid (or a partition key) is missing.")
	}
	r := scope.ranges[0]
	after, start, err := feedStart(req.header.Get("If-None-Match"), r)
	if err != nil {
		return nil, err
	}
	if !start {
		since = 0
	}
	page := feedPage{limit: limit, last: after, separate: separate != ""}
	for _, e := range r.feed[sort.Search(len(r.feed), func(i int) bool { return r.feed[i].lsn > after }):] {
		if !e.current() || e.slot.doc.ts < since || !scope.holds(e.slot.doc) || c.ttl.expired(e.slot.doc, c.now()) {
			continue
		}
		if page.full(e.lsn) {
			break
		}
		page.add(e.slot.doc)
	}
	return page.response(c, r), nil
}

// feedPage gathers documents until its limits, which fall between two LSNs only.
type feedPage struct {
	limit int
	// separate puts the LSN beside the document instead of into it.
	separate bool

	rows  [][]byte
	bytes int
	last  int64
	more  bool
}

func (p *feedPage) full(next int64) bool {
	p.more = next != p.last && (len(p.rows) >= p.limit || p.bytes >= maxPageBytes)
	return p.more
}

func (p *feedPage) add(d *document) {
	row := fmt.Appendf(nil, `%s,"_lsn":%d}`, strings.TrimSuffix(d.raw, "}"), d.lsn)
	if p.separate {
		row = fmt.Appendf(nil, `{"current":%s,"metadata":{"lsn":%d,"crts":%d}}`, d.raw, d.lsn, d.ts)
	}
	p.rows, p.bytes, p.last = append(p.rows, row), p.bytes+len(row), d.lsn
}

// response has the etag to go on from: behind the last document, or behind the whole range.
func (p *feedPage) response(c *container, r *pkRange) *response {
	resp := newResponse(http.StatusNotModified, nil)
	if len(p.rows) > 0 {
		resp = newResponse(http.StatusOK, listBody(c.rid, "Documents", p.rows))
	}
	resp.items = len(p.rows)
	at := r.lsn
	if p.more {
		at = p.last
	}
	resp.etag, resp.session = fmt.Sprintf(`"%d"`, at), sessionToken(r)
	resp.charge = 2 + float64(p.bytes/1024)
	return resp
}

// feedStart reads If-None-Match; start is true when there is no continuation yet.
func feedStart(header string, r *pkRange) (after int64, start bool, err *apiError) {
	switch header {
	case "":
		return 0, true, nil
	case "*":
		return r.lsn, false, nil
	}
	n, parseErr := strconv.ParseInt(strings.Trim(header, `"`), 10, 64)
	if parseErr != nil || n < 0 {
		return 0, false,
			badRequest("Invalid Continuation Token: If-None-Match '%s' is not an etag of the change feed.", header)
	}
	return n, false, nil
}

// modifiedSince reads If-Modified-Since as seconds since 1970; azcosmos writes the zone as UTC, the
// standard wants GMT.
func modifiedSince(header string) (int64, *apiError) {
	if header == "" {
		return 0, nil
	}
	for _, layout := range []string{http.TimeFormat, time.RFC1123} {
		if t, err := time.Parse(layout, header); err == nil {
			return t.Unix(), nil
		}
	}
	return 0, badRequest("If-Modified-Since '%s' is not a date in the form of RFC 1123.", header)
}
