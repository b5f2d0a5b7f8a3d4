package cosmosdb

import (
	"net/http"
	"strings"
)

// scope is the part of a container that a query or a feed reads.
type scope struct {
	ranges []*pkRange
	// prefix is the text of the partition key, or of its first components; empty for all.
	prefix string
	// low and high bound the effective partition key; high empty means no bound.
	low, high string
	// epk is the effective partition key when the scope is one partition key.
	epk string
	// single is set when the scope is one partition key or one range: the gateway then has nothing to
	// merge.
	single bool
}

// scope reads the headers that limit a request: the partition key, the range (its id, or the container's resource id, a
// comma and its id), the bounds of the effective partition key. The caller has the lock.
func (c *container) scope(req *request) (scope, *apiError) {
	out := scope{ranges: c.ranges, low: req.header.Get(headerStartEPK), high: req.header.Get(headerEndEPK)}
	if id := req.header.Get(headerRangeID); id != "" {
		rid, inside, qualified := strings.Cut(id, ",")
		if qualified {
			id = inside
		}
		r := c.rangeByID(id)
		if r == nil || qualified && rid != c.rid {
			return out, &apiError{
				status: http.StatusGone, substatus: substatusPartitionKeyRangeGone,
				message: "The partition key range '" + id + "' does not exist.",
			}
		}
		out.ranges, out.single = []*pkRange{r}, true
	}
	pk, ok, err := req.partitionKey()
	if err != nil || !ok {
		return out, err
	}
	switch {
	case len(pk.values) > len(c.pk.paths):
		return out,
			badRequest(
				"The partition key supplied in x-ms-partitionkey header has more components than defined in the collection.")
	case len(pk.values) < len(c.pk.paths) && !c.pk.multi:
		return out, partitionKeyIncomplete()
	}
	out.prefix = pk.text
	if len(pk.values) == len(c.pk.paths) {
		out.limitTo(c, pk)
	}
	return out, nil
}

// limitTo keeps one partition key, and with it one range, or none when that was not in the scope.
func (s *scope) limitTo(c *container, pk partitionKey) {
	s.single, s.prefix, s.epk = true, pk.text, c.pk.effective(pk)
	r := c.rangeOf(s.epk)
	for _, have := range s.ranges {
		if have == r {
			s.ranges = []*pkRange{r}
			return
		}
	}
	s.ranges = nil
}

func (s *scope) holds(d *document) bool {
	return strings.HasPrefix(d.pk.text, s.prefix) && d.epk >= s.low && (s.high == "" || d.epk < s.high)
}

func (c *container) rangeByID(id string) *pkRange {
	for _, r := range c.ranges {
		if r.id() == id {
			return r
		}
	}
	return nil
}
