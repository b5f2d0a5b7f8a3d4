package cosmosdb

import (
	"net/http"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/cosmossql"
	"sqlwriter/test/emulators/cosmosdb/jsonval"
)

// MaxDocumentBytes is the largest document, as UTF-8 JSON with the system members (service quotas: 2 MB).
const MaxDocumentBytes = 2 << 20

// docOp is one operation on one document, from a request or from a batch.
type docOp struct {
	op          Op
	id          string // from the address; a create or upsert takes it from the content
	pk          partitionKey
	content     jsonval.Value // of create, upsert, replace
	patch       patchRequest
	ifMatch     string
	ifNoneMatch string
}

// docResult is what an operation answers: the status, and the document where there is one.
type docResult struct {
	status int
	doc    *document
}

// apply does one operation inside a unit of writes.
func (t *txn) apply(o docOp) (docResult, *apiError) {
	switch o.op {
	case OpCreate:
		return t.create(o)
	case OpUpsert:
		return t.upsert(o)
	case OpReplace:
		return t.replace(o)
	case OpPatch:
		return t.patchDocument(o)
	case OpDelete:
		return t.deleteDocument(o)
	case OpRead:
		return read(t.get(slotKey(o.pk, o.id)), o.ifNoneMatch)
	default:
		return docResult{}, badRequest("The operation '%s' is not one on a document.", o.op)
	}
}

// checkContent checks a document to be stored against the rules for ids and for the partition key, which
// must be the one of the request.
func (c *container) checkContent(content jsonval.Value, pk partitionKey) *apiError {
	if content.Kind() != jsonval.Object {
		return badRequest("The request payload is invalid: a document is a JSON object, this is %s.", content.Kind())
	}
	if err := checkID(content.Get("id")); err != nil {
		return err
	}
	inBody, err := c.pk.of(content)
	if err != nil {
		return err
	}
	if inBody.text != pk.text {
		return partitionKeyMismatch()
	}
	return nil
}

// checkID applies the vendor's rules for the member id (service quotas; the .NET reference of Resource.Id
// names the four characters).
func checkID(id jsonval.Value) *apiError {
	switch {
	case id.IsUndefined():
		return badRequest("The input content is invalid because the required properties - 'id; ' - are missing.")
	case id.Kind() != jsonval.String:
		return badRequest(
			"The input content is invalid because the property 'id' is a %s; it must be a string.", id.Kind())
	case id.Text() == "":
		return badRequest("The input name '' is invalid. Ensure to provide a name that is not empty.")
	case len(id.Text()) > maxIDBytes:
		return badRequest("The property 'id' is longer than %d bytes.", maxIDBytes)
	case strings.ContainsAny(id.Text(), `/\?#`):
		return badRequest(`The property 'id' holds an illegal character: '/', '\', '?' and '#' are not allowed.`)
	}
	return nil
}

func (t *txn) create(o docOp) (docResult, *apiError) {
	if err := t.c.checkContent(o.content, o.pk); err != nil {
		return docResult{}, err
	}
	if t.get(slotKey(o.pk, o.content.Get("id").Text())) != nil {
		return docResult{}, conflict()
	}
	doc, err := t.write(o.content, o.pk)
	return docResult{http.StatusCreated, doc}, err
}

// upsert is a create when there is no document, whatever If-Match says (azure-cosmos-dotnet-v3 issue 1698),
// and a replace otherwise.
func (t *txn) upsert(o docOp) (docResult, *apiError) {
	if err := t.c.checkContent(o.content, o.pk); err != nil {
		return docResult{}, err
	}
	old := t.get(slotKey(o.pk, o.content.Get("id").Text()))
	if old == nil {
		doc, err := t.write(o.content, o.pk)
		return docResult{http.StatusCreated, doc}, err
	}
	if !matches(old, o.ifMatch) {
		return docResult{}, preconditionFailed()
	}
	doc, err := t.write(o.content, o.pk)
	return docResult{http.StatusOK, doc}, err
}

func (t *txn) replace(o docOp) (docResult, *apiError) {
	if err := t.c.checkContent(o.content, o.pk); err != nil {
		return docResult{}, err
	}
	if o.content.Get("id").Text() != o.id {
		return docResult{},
			badRequest("The property 'id' of the content is not the id in the address: a document cannot be renamed.")
	}
	if err := t.existing(o); err != nil {
		return docResult{}, err
	}
	doc, err := t.write(o.content, o.pk)
	return docResult{http.StatusOK, doc}, err
}

func (t *txn) deleteDocument(o docOp) (docResult, *apiError) {
	if err := t.existing(o); err != nil {
		return docResult{}, err
	}
	t.remove(slotKey(o.pk, o.id))
	return docResult{status: http.StatusNoContent}, nil
}

func (t *txn) patchDocument(o docOp) (docResult, *apiError) {
	if err := t.existing(o); err != nil {
		return docResult{}, err
	}
	old := t.get(slotKey(o.pk, o.id))
	if q := o.patch.condition; q != nil && !q.Matches(old.val) {
		return docResult{}, preconditionFailed()
	}
	content, err := o.patch.apply(old.val, t.c.pk)
	if err != nil {
		return docResult{}, err
	}
	doc, err := t.write(content, o.pk)
	return docResult{http.StatusOK, doc}, err
}

// existing answers 404 when the document is not there and 412 when If-Match names another version.
func (t *txn) existing(o docOp) *apiError {
	doc := t.get(slotKey(o.pk, o.id))
	if doc == nil {
		return documentNotFound()
	}
	if !matches(doc, o.ifMatch) {
		return preconditionFailed()
	}
	return nil
}

// matches reports whether If-Match lets the operation pass: none, *, or the version's own tag.
func matches(doc *document, ifMatch string) bool {
	return ifMatch == "" || ifMatch == "*" || ifMatch == doc.etag
}

func read(doc *document, ifNoneMatch string) (docResult, *apiError) {
	switch {
	case doc == nil:
		return docResult{}, documentNotFound()
	case ifNoneMatch != "" && (ifNoneMatch == "*" || ifNoneMatch == doc.etag):
		return docResult{http.StatusNotModified, doc}, nil
	default:
		return docResult{http.StatusOK, doc}, nil
	}
}

// parsePatch reads the body of a patch and binds its condition.
func (c *container) parsePatch(body jsonval.Value) (patchRequest, *apiError) {
	var req patchRequest
	if body.Kind() == jsonval.Array { // as the JavaScript SDK sends a patch without a condition
		return req, req.parseOperations(body)
	}
	if body.Kind() != jsonval.Object {
		return req, badRequest("The request payload is invalid: a patch is a JSON object, or an array of operations.")
	}
	if condition := body.Get("condition"); !condition.IsUndefined() {
		q, err := cosmossql.ParseCondition(condition.Text())
		if err == nil {
			err = q.Bind(nil, c.now())
		}
		if err != nil {
			return req, queryError(err)
		}
		req.condition = q
	}
	return req, req.parseOperations(body.Get("operations"))
}
