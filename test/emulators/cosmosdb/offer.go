package cosmosdb

import (
	"fmt"
	"net/http"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// emulatorThroughput is the request units a second that every container claims to have. Nothing is limited
// by it: throttling is made by faults.
const emulatorThroughput = 400

// serveOffer answers what azcosmos asks for ReadThroughput of a container: the query for the offer of a
// resource id, then the offer. Throughput cannot be changed here.
func (s *Server) serveOffer(req *request) (*response, *apiError) {
	const prefix = "SELECT * FROM c WHERE c.offerResourceId = '"
	switch {
	case req.method == http.MethodPost && req.offerID == "":
		rid, ok := strings.CutPrefix(req.body.Get("query").Text(), prefix)
		if !ok {
			return nil, badRequest("This query over offers is not implemented by this emulator.")
		}
		var entries [][]byte
		if c := s.containerByRID(strings.TrimSuffix(rid, "'")); c != nil {
			entries = append(entries, c.offer())
		}
		return newResponse(http.StatusOK, listBody("", "Offers", entries)), nil
	case req.method == http.MethodGet && req.offerID != "":
		if c := s.containerByRID(req.offerID); c != nil {
			return newResponse(http.StatusOK, c.offer()), nil
		}
		return nil, notFound()
	default:
		return nil, badRequest("Changing or listing throughput is not implemented by this emulator.")
	}
}

// offer is the container's throughput; its id is the container's resource id.
func (c *container) offer() []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	rid := jsonval.OfString(c.rid).JSON()
	return fmt.Appendf(nil, `{"offerVersion":"V2","offerType":"Invalid","content":{"offerThroughput":%d},"offerResourceId":%[2]s,`+
		`"id":%[2]s,"_rid":%[2]s,"_self":"offers/%[3]s/","_etag":"\"1\"","_ts":%d}`, emulatorThroughput, rid, c.rid, c.ts)
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
