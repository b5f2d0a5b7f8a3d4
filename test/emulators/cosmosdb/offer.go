package cosmosdb

import (
	"fmt"
	"net/http"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// emulatorThroughput is the request units a second that every container claims to have. Nothing is limited
// by it: throttling is made by faults.
const emulatorThroughput = 400

// serveOffer answers the list of offers, queries over it (azcosmos asks by offerResourceId, the .NET SDK by that and a
// parameter, the JavaScript SDK by resource), and an offer by its resource id. Throughput cannot be changed here.
func (s *Server) serveOffer(req *request) (*response, *apiError) {
	switch {
	case req.offerID == "" && (req.method == http.MethodGet || isQueryRequest(req.header)):
		var entries [][]byte
		s.mu.RLock()
		for _, id := range sortedKeys(s.databases) {
			db := s.databases[id]
			for _, id := range sortedKeys(db.containers) {
				entries = append(entries, db.containers[id].offer())
			}
		}
		s.mu.RUnlock()
		return s.list(req, "", "Offers", entries)
	case req.method == http.MethodGet:
		if c := s.containerByRID(req.offerID); c != nil {
			return newResponse(http.StatusOK, c.offer()), nil
		}
		return nil, notFound()
	default:
		return nil, badRequest("Changing throughput is not implemented by this emulator.")
	}
}

// offer is the container's throughput; its id is the container's resource id.
func (c *container) offer() []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	rid := jsonval.OfString(c.rid).JSON()
	return fmt.Appendf(nil,
		`{"offerVersion":"V2","offerType":"Invalid","content":{"offerThroughput":%d},"offerResourceId":%[2]s,`+
			`"resource":"dbs/%[5]s/colls/%[3]s/","id":%[2]s,"_rid":%[2]s,"_self":"offers/%[3]s/","_etag":"\"1\"","_ts":%d}`,
		emulatorThroughput, rid, c.rid, c.ts, c.dbRID)
}

func (s *Server) containerByRID(rid string) *container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, db := range s.databases {
		for _, c := range db.containers {
			if c.rid == rid {
				return c
			}
		}
	}
	return nil
}
