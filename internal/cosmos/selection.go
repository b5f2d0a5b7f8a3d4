package cosmos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

// Selection implements run.Selection over a Container.
type Selection struct{ c *Container }

// Selection gives the run.Selection of this container. It has no state: another instance continues from a continuation.
func (c *Container) Selection() Selection { return Selection{c} }

// Page gives one page of the documents of a run. See run.Selection. It runs the query of PendingDocs and returns the
// service's pages unchanged, also empty ones.
func (s Selection) Page(ctx context.Context, q run.Query, continuation string) (found []commit.PendingDoc, next string, err error) {
	query, params := pendingQuery(q.SysName, q.Statuses, q.From, q.To)
	if query == "" {
		return nil, "", nil
	}
	return s.c.pendingPage(ctx, operation{"cosmos: page", onContainer}, query, params, pageSize, continuation)
}

// pendingPage gives one page of pending documents.
func (c *Container) pendingPage(ctx context.Context, op operation, query string, params []Param, size int32, continuation string) (found []commit.PendingDoc, next string, err error) {
	p, err := c.markedPage(ctx, op, query, params, paging{size: size}, continuation)
	if err != nil {
		return nil, "", err
	}
	if found, err = readAllPending(op, p.rows); err != nil {
		return nil, "", err
	}
	return found, p.next, nil
}

// markedPage gives one page of a query.
//
// Its continuation is the service's continuation after a mark of the query. The service does not promise to refuse the
// continuation of another query, and would continue at a meaningless place. After an upgrade that changes the query, a
// search therefore begins again. The service's continuation is opaque; it must fit into a header and has up to 16 KB.
func (c *Container) markedPage(ctx context.Context, op operation, query string, params []Param, p paging, continuation string) (rowPage, error) {
	mark, err := markOf(op, query, params)
	if err != nil {
		return rowPage{}, err
	}
	token, ours := strings.CutPrefix(continuation, mark)
	if continuation != "" && (!ours || token == "" || strings.ContainsFunc(token, notInHeader)) {
		return rowPage{}, noContinuation(op)
	}
	read, err := c.page(ctx, op, query, params, p, token)
	if token != "" && refusesToken(err) {
		return rowPage{}, fault.Wrap(fault.Document, op.name, "continuation", "the service does not know the continuation", err)
	}
	if read.next != "" {
		read.next = mark + read.next
	}
	return read, err
}

func noContinuation(op operation) error {
	return fault.New(fault.Document, op.name, "continuation", "the continuation belongs to another search")
}

// markOf gives the mark of a query and its parameters.
func markOf(op operation, query string, params []Param) (string, error) {
	text, err := json.Marshal(struct {
		Query  string
		Params []Param
	}{query, params})
	if err != nil {
		return "", fault.Wrap(fault.Internal, op.name, "marshal", "the query cannot be written as JSON", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]) + ":", nil
}

// notInHeader reports characters that net/http refuses in a header. Its error would look like a network failure.
func notInHeader(r rune) bool { return r < ' ' || r == 0x7f }

// refusesToken reports whether the service refused a query because of its continuation. The service answers 400 and only
// the text gives the reason ("... malformed. Re-run the query without it", azure-cosmos-dotnet-v3 issue 3416). Every 400
// but 1004, which concerns the query, therefore counts. Any other problem of the query shows up again when the search
// begins again.
func refusesToken(err error) bool {
	return statusOf(err) == http.StatusBadRequest && fault.CodeOf(err) != "400/1004"
}
