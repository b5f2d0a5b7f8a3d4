package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// Control keeps the control document of one environment: "breaker:{sys_name}" in a container of its own (setting
// CONTROL_CONTAINER, partition key /id). In the container of the results it would come back on the change feed. It
// implements breaker.ControlStore and is safe for concurrent use.
type Control struct {
	container *Container
	id        string
}

// NewControl makes the store of an environment over the control container. The container stays the caller's to close.
func NewControl(c *Container, sysName string) *Control {
	return &Control{container: c, id: "breaker:" + sysName}
}

// Load gives the control document and its etag. See breaker.ControlStore. A document that cannot be read is
// infrastructure with code "unreadable", never the zero Control: that would be an empty, closed breaker.
func (k *Control) Load(ctx context.Context) (breaker.Control, string, error) {
	op := operation{"cosmos: load control", onDocument}
	var doc []byte
	var etag string
	err := k.container.do(ctx, op, k.container.options.Timeouts.Control, func(ctx context.Context, s *connected) error {
		r, err := s.container.ReadItem(withKey(ctx, k.id), azcosmos.NewPartitionKeyString(k.id), k.id, nil)
		doc, etag = r.Value, string(r.ETag)
		return err
	})
	if fault.Has(err, fault.Gone) {
		return breaker.Control{}, "", nil
	}
	if err != nil {
		return breaker.Control{}, "", blameless(err)
	}
	var control breaker.Control
	if err := json.Unmarshal(doc, &control); err != nil {
		return breaker.Control{}, "", fault.Wrap(fault.Infrastructure, op.name, "unreadable", "the control document "+k.id+" cannot be read", err)
	}
	if etag == "" {
		return breaker.Control{}, "", fault.New(fault.Infrastructure, op.name, "no_etag", "the service gave the control document without its etag")
	}
	control.Extra = withoutSystem(control.Extra)
	return control, etag, nil
}

// Store writes the whole control document if it still has etag, or creates it for an empty one, and answers the new
// etag. See breaker.ControlStore. After an infrastructure error it may or may not have been written: load it again.
//
// Changed is every answer that says "somebody else was there": 412, 409 for the first document, 404 for a document that
// was deleted since, and 449, another write under way, when it outlasts our repetitions. "*", which the service would
// read as "any", is never right here and answers Changed without a request.
func (k *Control) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	op := operation{"cosmos: store control", onDocument}
	if etag == "*" {
		return "", changed(op, "no_etag", fmt.Sprintf("etag %q names no version of the control document", etag), nil)
	}
	doc, err := k.encode(c)
	if err != nil {
		return "", fault.Wrap(fault.Internal, op.name, "marshal", "the control document cannot be written as JSON", err)
	}
	var next string
	err = k.container.do(ctx, op, k.container.options.Timeouts.Control, func(ctx context.Context, s *connected) error {
		r, err := k.write(withKey(ctx, k.id), s.container, doc, etag)
		next = string(r.ETag)
		return err
	})
	switch {
	case fault.Has(err, fault.Gone):
		return "", changed(op, fault.CodeOf(err), "the control document is not there any more", err)
	case statusOf(err) == http.StatusConflict && etag == "":
		return "", changed(op, fault.CodeOf(err), "somebody else made the control document first", err)
	case statusOf(err) == statusRetryWith:
		return "", changed(op, fault.CodeOf(err), "another write of the control document was under way", err)
	case err != nil:
		return "", blameless(err)
	case next == "":
		return "", fault.New(fault.Infrastructure, op.name, "no_etag", "the service stored the control document and did not say under which etag")
	}
	return next, nil
}

// write sends the document: as a new one, or in the place of the one that has the etag.
func (k *Control) write(ctx context.Context, c *azcosmos.ContainerClient, doc []byte, etag string) (azcosmos.ItemResponse, error) {
	key := azcosmos.NewPartitionKeyString(k.id)
	if etag == "" {
		return c.CreateItem(ctx, key, doc, nil)
	}
	match := azcore.ETag(etag)
	return c.ReplaceItem(ctx, key, k.id, doc, &azcosmos.ItemOptions{IfMatchEtag: &match})
}

// encode writes the control document with its id.
func (k *Control) encode(c breaker.Control) ([]byte, error) {
	id, err := json.Marshal(k.id)
	if err != nil {
		return nil, err
	}
	extra := withoutSystem(c.Extra)
	if extra == nil {
		extra = map[string]json.RawMessage{}
	}
	extra["id"] = id
	c.Extra = extra
	return json.Marshal(c)
}

// withoutSystem gives the members that are not the id and not the service's own; nil when none is left.
func withoutSystem(extra map[string]json.RawMessage) map[string]json.RawMessage {
	kept := maps.Clone(extra)
	for _, name := range []string{"id", "_rid", "_self", "_etag", "_attachments", "_ts", "_lsn"} {
		delete(kept, name)
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// changed is the answer of a compare-and-set that lost.
func changed(op operation, code, reason string, err error) error {
	return &fault.Error{Kind: fault.Contention, Condition: fault.Changed, Code: code, Op: op.name, Reason: reason, Err: err}
}

// blameless turns what would be a document's own error into infrastructure: the control document is ours, and no
// result may pay for it.
func blameless(err error) error {
	e := fault.As(err)
	if e == nil || fault.IsDependency(err) || e.Condition == fault.Changed {
		return err
	}
	return &fault.Error{
		Kind: fault.Infrastructure, Code: e.Code, Op: e.Op, Reason: "the control document is refused", RetryAfter: e.RetryAfter, Err: err,
	}
}
