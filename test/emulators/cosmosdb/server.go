package cosmosdb

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// DefaultKey is the account key when Options name none: the one that the vendor publishes for its emulator. It guards
// nothing: the server listens on loopback.
const DefaultKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==" //nolint:gosec // well-known

// DefaultPageLimit is the page size of queries that name none, or -1.
const DefaultPageLimit = 100

// DefaultRanges is the number of physical partitions of a new container.
const DefaultRanges = 2

// maxPageBytes ends a page of a query or of the feed (service quotas: 4 MB).
const maxPageBytes = 4 << 20

// Options configure a Server. The zero value is a server in memory with the defaults above.
type Options struct {
	// Key is the account key in base64; empty means DefaultKey.
	Key string
	// AcceptBearer lets requests with any Microsoft Entra token pass. Off, they get 401.
	AcceptBearer bool
	// Now is the clock of _ts, ttl and GetCurrentTimestamp; nil is the wall clock. The date of a request's
	// signature is always compared with the wall clock, because clients take it from there.
	Now func() time.Time
	// PageLimit is the page size of queries that name none; 0 means DefaultPageLimit.
	PageLimit int
	// EmptyPages makes every n-th page of a query empty but continued, the first one included: 2 is every
	// second page. 0 and 1 leave only the empty pages that arise by themselves (a range without a match).
	EmptyPages int
	// Ranges is the number of physical partitions of containers made from now on; 0 means DefaultRanges.
	Ranges int
}

// Server is a Cosmos DB account, an http.Handler. Its methods may be called from any goroutine.
type Server struct {
	opts Options
	key  []byte

	mu        sync.RWMutex // guards databases and their containers maps
	databases map[string]*database

	faults *faults
	stats  *stats
}

// New makes a server. Error: a key that is not base64.
func New(opts Options) (*Server, error) {
	if opts.Key == "" {
		opts.Key = DefaultKey
	}
	key, err := base64.StdEncoding.DecodeString(opts.Key)
	if err != nil {
		return nil, fmt.Errorf("cosmosdb: the key is not base64: %w", err)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.PageLimit <= 0 {
		opts.PageLimit = DefaultPageLimit
	}
	if opts.Ranges <= 0 {
		opts.Ranges = DefaultRanges
	}
	return &Server{opts: opts, key: key, databases: map[string]*database{}, faults: newFaults(), stats: newStats()}, nil
}

// Close cuts the requests that faults hold, and holds none from now on; the rest of the server keeps working. Tests
// that simulate the death of the process call it before they drop the connections.
func (s *Server) Close() { s.faults.close() }

// Key is the account key in base64.
func (s *Server) Key() string { return s.opts.Key }

// container looks a container up by its names.
func (s *Server) container(dbID, id string) (*container, *apiError) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	db := s.databases[dbID]
	if db == nil || db.containers[id] == nil {
		return nil, notFound()
	}
	return db.containers[id], nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isControl(r.URL.Path) {
		s.serveControl(w, r)
		return
	}
	req, err := newRequest(r)
	if err == nil {
		err = s.authorize(req)
	}
	if err == nil {
		err = s.resolve(req)
	}
	if err != nil {
		s.send(w, req, nil, err)
		return
	}
	f := s.faults.match(req)
	if !f.before(r.Context()) {
		s.cut(w, req)
		return
	}
	if f.status != nil {
		s.sendFault(w, req, f)
		return
	}
	resp, err := s.serve(req)
	if !f.after(r.Context()) {
		s.cut(w, req)
		return
	}
	s.send(w, req, resp, err)
}

// resolve turns the resource ids of an address into names, which faults, counters and the rest of the server know. A
// document that does not exist gets the name "", which no document has.
func (s *Server) resolve(req *request) *apiError {
	if !req.byRID {
		return nil
	}
	if req.containerID != "" {
		c := s.containerByRID(req.containerID)
		if c == nil || c.dbRID != req.databaseID {
			return notFound()
		}
		req.databaseID, req.containerID = c.dbID, c.id
		if req.documentRID != "" {
			req.documentID = c.nameOf(req)
		}
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, db := range s.databases {
		if db.rid == req.databaseID {
			req.databaseID = db.id
			return nil
		}
	}
	return notFound()
}

// nameOf is the id of the document that the request names by its resource id, in the partition key of its header.
func (c *container) nameOf(req *request) string {
	pk, ok, err := req.partitionKey()
	if !ok || err != nil || len(pk.values) != len(c.pk.paths) {
		return ""
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, s := range c.rangeOf(c.pk.effective(pk)).slots {
		if s.doc != nil && s.doc.pk.text == pk.text && c.docRID(s.number) == req.documentRID {
			return s.doc.id
		}
	}
	return ""
}

// cut closes the connection without an answer: the client sees EOF.
func (s *Server) cut(w http.ResponseWriter, req *request) {
	s.stats.count(req.op, req.containerID, 0)
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // net/http closes the connection, also over HTTP/2
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close() // the connection is gone
}

// serve does what the request asks.
func (s *Server) serve(req *request) (*response, *apiError) {
	switch req.op {
	case OpAccount:
		return s.account(req), nil
	case OpDatabase:
		return s.serveDatabase(req)
	case OpContainer:
		return s.serveContainer(req)
	case OpOffer:
		return s.serveOffer(req)
	default:
	}
	c, err := s.container(req.databaseID, req.containerID)
	if err != nil {
		return nil, err
	}
	req.contentPath, req.altContentPath = c.rid, "dbs/"+c.dbID+"/colls/"+c.id
	switch req.op {
	case OpRanges:
		return c.pkRanges(req), nil
	case OpQuery, OpReadMany, OpList, OpPlan:
		return s.query(c, req)
	case OpFeed:
		return s.changeFeed(c, req)
	case OpBatch:
		return c.batch(req)
	case OpRead:
		return c.readDocument(req)
	default:
		return c.writeDocument(req)
	}
}
