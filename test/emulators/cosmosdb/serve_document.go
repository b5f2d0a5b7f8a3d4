package cosmosdb

import (
	"fmt"
	"net/http"

	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// pointKey is the partition key header of a request on one document, which must have it with all its
// components.
func (c *container) pointKey(req *request) (partitionKey, *apiError) {
	pk, ok, err := req.partitionKey()
	switch {
	case err != nil:
		return pk, err
	case !ok:
		return pk, partitionKeyIncomplete()
	case len(pk.values) < len(c.pk.paths):
		return pk, partitionKeyIncomplete()
	case len(pk.values) > len(c.pk.paths):
		return pk,
			badRequest(
				"The partition key supplied in x-ms-partitionkey header has more components than defined in the collection.")
	}
	return pk, nil
}

// readDocument answers a point read.
func (c *container) readDocument(req *request) (*response, *apiError) {
	pk, err := c.pointKey(req)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	result, err := read(c.get(slotKey(pk, req.documentID)), req.header.Get("If-None-Match"))
	if err != nil {
		return nil, err
	}
	resp := result.response()
	resp.session = sessionToken(c.rangeOf(result.doc.epk))
	resp.charge = pointReadCharge(len(result.doc.raw))
	return resp, nil
}

func (r docResult) response() *response {
	if r.doc == nil {
		return newResponse(r.status, nil)
	}
	resp := newResponse(r.status, []byte(r.doc.raw))
	resp.etag = r.doc.etag
	return resp
}

// writeDocument does one write as a unit of its own.
func (c *container) writeDocument(req *request) (*response, *apiError) {
	pk, err := c.pointKey(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	op := docOp{
		op: req.op, id: req.documentID, pk: pk, content: req.body,
		ifMatch: req.header.Get("If-Match"), ifNoneMatch: req.header.Get("If-None-Match"),
	}
	if req.op == OpPatch {
		if op.patch, err = c.parsePatch(req.body); err != nil {
			return nil, err
		}
	}
	t := c.begin(pk)
	result, err := t.apply(op)
	if err != nil {
		return nil, err
	}
	t.commit()
	resp := result.response()
	resp.session = sessionToken(t.rng)
	resp.charge = 6 + float64(len(resp.body)/512)
	return resp, nil
}

// maxBatchOperations is the limit of a transactional batch.
const maxBatchOperations = 100

// batch does a transactional batch: all operations, or none with 424 for those that were not at fault.
func (c *container) batch(req *request) (*response, *apiError) {
	if h := req.header.Get(headerBatchAtomic); h != "" && !isTrue(h) {
		return nil, badRequest("A batch that is not atomic is not implemented by this emulator.")
	}
	pk, err := c.pointKey(req)
	if err != nil {
		return nil, err
	}
	list := req.body.Elements()
	switch {
	case req.body.Kind() != jsonval.Array || len(list) == 0:
		return nil, badRequest("One of the specified inputs is invalid: a batch is an array of operations.")
	case len(list) > maxBatchOperations:
		return nil,
			badRequest("Batch request has more operations than what is supported: %d of %d.",
				len(list), maxBatchOperations)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.begin(pk)
	results := make([]docResult, len(list))
	for i, o := range list {
		op, failure := c.batchOperation(o, pk)
		if failure == nil {
			results[i], failure = t.apply(op)
		}
		if failure != nil {
			return batchFailed(len(list), i, failure), nil
		}
	}
	t.commit()
	body := []byte{'['}
	for i, r := range results {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"statusCode":%d,"requestCharge":6`, r.status)
		if r.doc != nil {
			body = fmt.Appendf(body, `,"eTag":%s,"resourceBody":%s`, jsonval.OfString(r.doc.etag).JSON(), r.doc.raw)
		}
		body = append(body, '}')
	}
	resp := newResponse(http.StatusOK, append(body, ']'))
	resp.session = sessionToken(t.rng)
	return resp, nil
}

// batchFailed is the answer 207: the operation at fault with its own status, the others 424.
func batchFailed(n, at int, failure *apiError) *response {
	body := []byte{'['}
	for i := range n {
		status := http.StatusFailedDependency
		if i == at {
			status = failure.status
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"statusCode":%d,"requestCharge":0`, status)
		if i == at {
			body = fmt.Appendf(body, `,"subStatusCode":%d,"message":%s`, failure.substatus,
				jsonval.OfString(failure.message).JSON())
		}
		body = append(body, '}')
	}
	return newResponse(http.StatusMultiStatus, append(body, ']'))
}

// batchOperation reads one entry of a batch.
func (c *container) batchOperation(o jsonval.Value, pk partitionKey) (docOp, *apiError) {
	kinds := map[string]Op{
		"Create": OpCreate, "Upsert": OpUpsert, "Replace": OpReplace, "Delete": OpDelete,
		"Read": OpRead, "Patch": OpPatch,
	}
	op := docOp{
		op: kinds[o.Get("operationType").Text()], id: o.Get("id").Text(), pk: pk,
		content: o.Get("resourceBody"), ifMatch: o.Get("ifMatch").Text(),
	}
	var err *apiError
	if op.op == OpPatch {
		op.patch, err = c.parsePatch(op.content)
	}
	return op, err
}
