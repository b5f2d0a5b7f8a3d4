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

// Selection finds the documents of runs. It keeps nothing of its own: another one of the same container goes on where this
// one stopped.
func (c *Container) Selection() Selection { return Selection{c} }

// Page gives one page of the documents that a run takes. See run.Selection. It asks the query of Waiting, and the service's
// page is handed on as it is: empty ones too.
func (s Selection) Page(ctx context.Context, q run.Query, continuation string) (found []commit.PendingDoc, next string, err error) {
	query, params := pendingQuery(q.SysName, q.Statuses, q.From, q.To)
	if query == "" {
		return nil, "", nil
	}
	return s.c.pendingPage(ctx, operation{"cosmos: page", onContainer}, query, params, pageSize, continuation)
}

// pendingPage gives one page of documents that wait.
//
// A continuation is the service's own with a mark of its query before it: the service does not promise to notice that a
// continuation is another query's, and would go on at a place that means nothing here. A build that asks differently thus
// begins again. Of the service's part nothing is known but that it goes into a header and has up to 16 KB.
func (c *Container) pendingPage(ctx context.Context, op operation, query string, params []Param, size int32, continuation string) (found []commit.PendingDoc, next string, err error) {
	mark, err := markOf(op, query, params)
	if err != nil {
		return nil, "", err
	}
	token, ours := strings.CutPrefix(continuation, mark)
	if continuation != "" && (!ours || token == "" || strings.ContainsFunc(token, notInHeader)) {
		return nil, "", noContinuation(op)
	}
	rows, next, err := c.page(ctx, op, query, params, size, token)
	if token != "" && refusesToken(err) {
		return nil, "", fault.Wrap(fault.Document, op.name, "continuation", "the service does not know the place where the search stopped", err)
	}
	if err != nil {
		return nil, "", err
	}
	if found, err = readAllPending(op, rows); err != nil {
		return nil, "", err
	}
	if next != "" {
		next = mark + next
	}
	return found, next, nil
}

// noContinuation says that a continuation is none of ours.
func noContinuation(op operation) error {
	return fault.New(fault.Document, op.name, "continuation", "the place where the search stopped is none of this search")
}

// markOf begins the continuations of one query with its parameters.
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

// notInHeader reports what net/http sends in no header: it would fail as if the network had.
func notInHeader(r rune) bool { return r < ' ' || r == 0x7f }

// refusesToken reports whether the service refused a query that has a continuation because of it. It says 400 and in words
// only what is wrong ("... malformed. Re-run the query without it", azure-cosmos-dotnet-v3 issue 3416), so every 400 is
// taken for that. One that was meant for the query comes again when the search begins again. 1004 speaks of the query.
func refusesToken(err error) bool {
	return statusOf(err) == http.StatusBadRequest && fault.CodeOf(err) != "400/1004"
}
