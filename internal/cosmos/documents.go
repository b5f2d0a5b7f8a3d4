package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// readManyChunk is how many ids one query of ReadMany contains.
const readManyChunk = 100

// Read gives one document by id, byte by byte as the service sends it. See commit.Documents. A container whose
// partition key is not the id is searched first, by a query over all its partitions.
func (c *Container) Read(ctx context.Context, id string) (json.RawMessage, error) {
	op := operation{"cosmos: read", onDocument}
	if err := checkID(op, id); err != nil {
		return nil, err
	}
	var doc json.RawMessage
	err := c.underKey(ctx, op, c.options.Timeouts.Read, id, nil, func(ctx context.Context, s *connected) error {
		r, err := s.container.ReadItem(ctx, azcosmos.NewPartitionKey(), id, nil)
		doc = r.Value
		return err
	})
	if err != nil {
		return nil, err
	}
	return doc, nil
}

// ReadMany gives the documents that exist among ids; an id may be repeated. See commit.Documents. The documents are
// equal in meaning to what is stored, not byte by byte: the SDK writes <, > and & as \u003c and so on (docs/facts.md
// F65).
//
// It does not use the SDK's ReadManyItems (v1.5.0). That answers success with part of the documents when it is
// cancelled between two partition ranges. It also hides a 429 of one range behind the cancellation of another.
func (c *Container) ReadMany(ctx context.Context, ids []string) ([]json.RawMessage, error) {
	op := operation{"cosmos: read many", onContainer}
	var docs []json.RawMessage
	for some := range slices.Chunk(distinct(ids), readManyChunk) {
		from, params, err := findQuery(op, commit.Query{IDs: some})
		if err != nil {
			return nil, err
		}
		err = c.pages(ctx, op, "SELECT *"+from, params, func(page []json.RawMessage) (bool, error) {
			docs = append(docs, page...)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// Record sets sql_writer to state if the document still has the snapshot's etag, and gives the new etag. See
// commit.Documents. It sends one patch with one operation and If-Match, so the document itself does not travel.
//
// The service reads the etags "" and "*" as "any", so Record answers Changed for them without a request. After an
// infrastructure error the patch may or may not have been applied (see doc.go, "Lost acknowledgements").
func (c *Container) Record(ctx context.Context, doc invoice.Snapshot, state invoice.State) (string, error) {
	return c.patch(ctx, operation{"cosmos: record", onDocument}, doc.ID, doc.ETag, doc.JSON(), "sql_writer", state)
}

// patch is Record for any member.
func (c *Container) patch(
	ctx context.Context, op operation, id, etag string, doc json.RawMessage, member string, to any,
) (string, error) {
	if err := checkID(op, id); err != nil {
		return "", err
	}
	if doc == nil {
		return "",
			fault.New(fault.Internal, op.name, fault.CodeBug,
				"document %s was not read whole, so its partition key is unknown", id)
	}
	if etag == "" || etag == "*" {
		return "", &fault.Error{
			Kind: fault.Contention, Condition: fault.Changed, Code: "no_etag", Op: op.name,
			Reason: fmt.Sprintf("etag %q names no version of a document", etag),
		}
	}
	value, err := json.Marshal(to)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op.name, fault.CodeBug, member+" cannot be written as JSON", err)
	}
	var patch azcosmos.PatchOperations
	patch.AppendSet("/"+member, json.RawMessage(value))
	match := azcore.ETag(etag)
	var next string
	err = c.underKey(ctx, op, c.options.Timeouts.Record, id, doc, func(ctx context.Context, s *connected) error {
		r, err := s.container.PatchItem(ctx, azcosmos.NewPartitionKey(), id, patch,
			&azcosmos.ItemOptions{IfMatchEtag: &match})
		next = string(r.ETag)
		return err
	})
	if err != nil {
		return "", err
	}
	if next == "" {
		return "",
			fault.New(fault.Infrastructure, op.name, "no_etag",
				"the service recorded the state and did not say under which etag")
	}
	return next, nil
}

// Submit writes a whole document, as the API of the user's system does (sqlwriterctl document submit). An existing
// document is refused with code "409". With replace it is replaced whole, sql_writer included.
//
// Cosmos DB takes the same id under each partition key. Submit looks first, and refuses a second document with the id.
// It does not see one that another program writes at the same moment.
//
// Errors by kind:
//   - document: the text is not an object with an id that Cosmos DB accepts, or the service refuses it; code "id_twice"
//     if a
//     document with this id has another partition key; condition TooLarge above the service's limit
//   - infrastructure: it may or may not have been written
//   - throttled, contention
func (c *Container) Submit(ctx context.Context, doc json.RawMessage, replace bool) error {
	op := operation{"cosmos: submit", onDocument}
	var members map[string]json.RawMessage // of a struct Go would take "ID" for "id"
	if err := json.Unmarshal(doc, &members); err != nil {
		return fault.Wrap(fault.Document, op.name, "json", "the document is not a JSON object with a text \"id\"", err)
	}
	var id string
	if err := json.Unmarshal(members["id"], &id); err != nil {
		return fault.New(fault.Document, op.name, "id", "the document has no text \"id\"")
	}
	if reason := refusedID(id); reason != "" {
		return fault.New(fault.Document, op.name, "id", "id %q: %s", fault.Truncate(id, fault.MaxForeign), reason)
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeouts.Submit)
	defer cancel()
	if err := c.refuseTwin(ctx, op, id, doc); err != nil {
		return err
	}
	return c.underKey(ctx, op, c.options.Timeouts.Submit, id, doc, func(ctx context.Context, s *connected) error {
		var err error
		if replace {
			_, err = s.container.UpsertItem(ctx, azcosmos.NewPartitionKey(), doc, nil)
		} else {
			_, err = s.container.CreateItem(ctx, azcosmos.NewPartitionKey(), doc, nil)
		}
		return err
	})
}

// refuseTwin refuses a document whose id another one has under another partition key.
func (c *Container) refuseTwin(ctx context.Context, op operation, id string, doc json.RawMessage) error {
	key, err := c.key(ctx)
	if err != nil || key.isID() {
		return err
	}
	there, err := c.keysOf(ctx, op, key, id)
	if err != nil {
		return err
	}
	own := key.of(doc)
	for _, k := range there {
		if !sameKey(k, own) {
			return fault.New(fault.Document, op.name, commit.CodeIDTwice,
				"a document with the id %q has the partition key %s, and this one has %s",
				fault.Truncate(id, fault.MaxForeign), fault.Truncate(k, fault.MaxForeign),
				fault.Truncate(own, fault.MaxForeign))
		}
	}
	return nil
}

// checkID answers Gone for an id that no document of Cosmos DB can have. The id is part of the request's address, where
// "" and ".." would address something else.
func checkID(op operation, id string) error {
	reason := refusedID(id)
	if reason == "" {
		return nil
	}
	return &fault.Error{
		Kind: fault.Document, Condition: fault.Gone, Code: "id", Op: op.name,
		Reason: fmt.Sprintf("no document can have the id %q: %s", fault.Truncate(id, fault.MaxForeign), reason),
	}
}

// refusedID gives the reason why Cosmos DB refuses an id, or "" (docs/facts.md F68).
func refusedID(id string) string {
	switch {
	case id == "":
		return "it is empty"
	case id == "." || id == "..":
		return "it is a step in an address"
	case strings.ContainsAny(id, `/\?#`):
		return `it has one of / \ ? #`
	}
	return ""
}

func distinct(ids []string) []string {
	seen := make(map[string]bool, len(ids))
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			out = append(out, id)
		}
		seen[id] = true
	}
	return out
}

func anyOf[T any](values []T) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = v
	}
	return out
}
