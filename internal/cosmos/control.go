package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
)

// Control stores the control document of one environment, "breaker:{sys_name}", and the statuses of its instances. Its
// container is its own (sqlwriter-control, partition key /id), because there the change feed would bring it back. It is
// safe for concurrent use.
type Control struct {
	container   *Container
	sysName, id string
}

// statusKept is the time in seconds after which the service may delete a status that is not written any more. It does
// so in a container with a default time to live.
const statusKept = 48 * 60 * 60

// NewControl makes the store of an environment over the control container. The caller closes the container.
func NewControl(c *Container, sysName string) *Control {
	return &Control{container: c, sysName: sysName, id: "breaker:" + sysName}
}

// Load gives the control document and its etag. See breaker.ControlStore. A document that cannot be read is
// infrastructure with code "unreadable". The zero Control would instead mean a closed breaker.
func (k *Control) Load(ctx context.Context) (breaker.Control, string, error) {
	op := operation{"cosmos: load control", onDocument}
	var control breaker.Control
	etag, found, err := k.container.load(ctx, op, k.id, &control)
	if err != nil || !found {
		return breaker.Control{}, "", err
	}
	if etag == "" {
		return breaker.Control{}, "",
			fault.New(fault.Infrastructure, op.name, "no_etag",
				"the service gave the control document without its etag")
	}
	control.Extra = withoutSystem(control.Extra)
	return control, etag, nil
}

// Store writes the whole control document if it still has etag, and gives the new etag. An empty etag creates the
// document. See breaker.ControlStore. After an infrastructure error it may or may not have been written: load it again.
//
// Condition Changed stands for every lost race: 412; 409 for the first document; 404 for a deleted one; 449 that
// outlasts the retries. The service reads the etag "*" as "any", so Store answers Changed for it without a request.
func (k *Control) Store(ctx context.Context, c breaker.Control, etag string) (string, error) {
	op := operation{"cosmos: store control", onDocument}
	if etag == "*" {
		return "", changed(op, "no_etag", fmt.Sprintf("etag %q names no version of the control document", etag), nil)
	}
	doc, err := k.encode(c)
	if err != nil {
		return "",
			fault.Wrap(fault.Internal, op.name, fault.CodeBug, "the control document cannot be written as JSON", err)
	}
	var next string
	err = k.container.underKey(ctx, op, k.container.options.Timeouts.Control, k.id, nil,
		func(ctx context.Context, s *connected) error {
			r, err := k.write(ctx, s.container, doc, etag)
			next = string(r.ETag)
			return err
		})
	switch {
	case fault.Has(err, fault.Gone):
		return "", changed(op, fault.CodeOf(err), "the control document is not there any more", err)
	case statusOf(err) == http.StatusConflict && etag == "":
		return "", changed(op, fault.CodeOf(err), "another instance made the control document first", err)
	case statusOf(err) == statusRetryWith:
		return "", changed(op, fault.CodeOf(err), "another write of the control document was under way", err)
	case err != nil:
		return "", blameless(err)
	case next == "":
		return "",
			fault.New(fault.Infrastructure, op.name, "no_etag",
				"the service stored the control document and did not say under which etag")
	}
	return next, nil
}

// LoadStatuses implements breaker.ControlStore. A status that cannot be read is left out.
func (k *Control) LoadStatuses(ctx context.Context, since time.Time) (all []breaker.Status, err error) {
	const query = "SELECT * FROM c WHERE c.status_of = @sys_name AND c._ts >= @since"
	params := []Param{{Name: "@sys_name", Value: k.sysName}, {Name: "@since", Value: since.Unix()}}
	err = k.container.Query(ctx, query, params, func(rows []json.RawMessage) (bool, error) {
		for _, row := range rows {
			var s breaker.Status
			if json.Unmarshal(row, &s) == nil {
				all = append(all, s)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, blameless(err)
	}
	return all, nil
}

// StoreStatus implements breaker.ControlStore.
func (k *Control) StoreStatus(ctx context.Context, s breaker.Status) error {
	op := operation{"cosmos: store status", onDocument}
	id := "instance:" + k.sysName + ":" + s.Instance
	return k.container.keep(ctx, op, id, struct {
		ID       string `json:"id"`
		StatusOf string `json:"status_of"`
		TTL      int    `json:"ttl"`
		breaker.Status
	}{id, k.sysName, statusKept, s})
}

// load reads a document of the control container into doc. found is false where there is none.
func (c *Container) load(ctx context.Context, op operation, id string, doc any) (etag string, found bool, err error) {
	var text []byte
	err = c.underKey(ctx, op, c.options.Timeouts.Control, id, nil, func(ctx context.Context, s *connected) error {
		r, err := s.container.ReadItem(ctx, azcosmos.NewPartitionKey(), id, nil)
		text, etag = r.Value, string(r.ETag)
		return err
	})
	switch {
	case fault.Has(err, fault.Gone):
		return "", false, nil
	case err != nil:
		return "", false, blameless(err)
	}
	if err := json.Unmarshal(text, doc); err != nil {
		return "", false, fault.Wrap(fault.Infrastructure, op.name, "unreadable", "document "+id+" cannot be read", err)
	}
	return etag, true, nil
}

// keep writes a document of the control container, whatever is there.
func (c *Container) keep(ctx context.Context, op operation, id string, doc any) error {
	text, err := json.Marshal(doc)
	if err != nil {
		return fault.Wrap(fault.Internal, op.name, fault.CodeBug, "document "+id+" cannot be written as JSON", err)
	}
	return blameless(c.underKey(ctx, op, c.options.Timeouts.Control, id, nil,
		func(ctx context.Context, s *connected) error {
			_, err := s.container.UpsertItem(ctx, azcosmos.NewPartitionKey(), text, nil)
			return err
		}))
}

// write creates the document, or replaces the one with the etag.
func (k *Control) write(
	ctx context.Context, c *azcosmos.ContainerClient, doc []byte, etag string,
) (azcosmos.ItemResponse, error) {
	key := azcosmos.NewPartitionKey()
	if etag == "" {
		return c.CreateItem(ctx, key, doc, nil)
	}
	match := azcore.ETag(etag)
	return c.ReplaceItem(ctx, key, k.id, doc, &azcosmos.ItemOptions{IfMatchEtag: &match})
}

// encode adds the id to the control document and encodes it.
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

// withoutSystem removes the id and the service's own members; nil when no other is left.
func withoutSystem(extra map[string]json.RawMessage) map[string]json.RawMessage {
	rest := maps.Clone(extra)
	for _, name := range append(systemMembers(), "id") {
		delete(rest, name)
	}
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// changed is the error of a lost compare-and-set.
func changed(op operation, code, reason string, err error) error {
	return &fault.Error{
		Kind: fault.Contention, Condition: fault.Changed, Code: code, Op: op.name, Reason: reason, Err: err,
	}
}

// blameless turns a document's own error into infrastructure: the control document is not a result, so no result is
// blamed.
func blameless(err error) error {
	e := fault.As(err)
	if e == nil || fault.IsDependency(err) || e.Condition == fault.Changed {
		return err
	}
	return &fault.Error{
		Kind: fault.Infrastructure, Code: e.Code, Op: e.Op, Reason: "the control document is refused",
		RetryAfter: e.RetryAfter, Err: err,
	}
}
