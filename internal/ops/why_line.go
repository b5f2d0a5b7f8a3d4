package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sqlwriter/internal/commit"
)

const (
	// ledgerWithin bounds the question to the ledger: an outage of SQL must not delay the answer.
	ledgerWithin = 5 * time.Second
	// othersListed bounds Explanation.Others.
	othersListed = 100
)

// WhyQuery asks about one document, by its id or by a line.
type WhyQuery struct {
	ID string `json:"id,omitempty"`
	// Line is the id of the main line or of a duplicate.
	Line int64 `json:"line,omitempty"`
}

// LedgerLine is what the ledger says of a line.
type LedgerLine struct {
	Line     int64  `json:"line"`
	Document string `json:"document"`
	SysName  string `json:"sys_name"`
	// Outcome is applied, failed (marked) or adopted. SourceTS is the _ts of the document then, in seconds.
	Outcome  string `json:"outcome"`
	SourceTS int64  `json:"source_ts"`
}

// Ledger reads the ledger.
type Ledger interface {
	// LedgerLines returns the rows of lines; a line that has none is left out. Errors by kind: infrastructure,
	// throttled.
	LedgerLines(ctx context.Context, lines []int64) ([]LedgerLine, error)
	// LedgerOf returns the rows that a document has. It reads the whole ledger. Errors as above.
	LedgerOf(ctx context.Context, document string) ([]LedgerLine, error)
}

// AboutLine is the part of an Explanation about the line that was asked for.
type AboutLine struct {
	Line int64 `json:"line"`
	// Ledger is what the ledger says; nil when it does not know the line, or when it cannot be asked. Says has it in
	// words.
	Ledger *LedgerLine `json:"ledger,omitempty"`
	Says   string      `json:"says"`
	// Others are the other documents that name the line, at most 100: those of this environment first, newest result
	// first.
	Others []DocumentRow `json:"others"`
}

// Why explains one document: why it is in its state, and what happens next. By a line it explains the newest result of
// this environment that names it, otherwise of any, and lists the others. A newer result of another environment comes
// first in the summary. By an id it does without SQL; by a line it goes on without an answer of the ledger. Errors by
// kind: *RequestError (usage; not found, which says what the ledger knows of the line); infrastructure, throttled.
func (o *Ops) Why(ctx context.Context, q WhyQuery) (Explanation, error) {
	switch {
	case (q.ID == "") == (q.Line == 0):
		return Explanation{}, refuse(Usage, "id: expected the id of a document or a line, not both")
	case q.Line < 0:
		return Explanation{}, refuse(Usage, "line: expected the id of a line, found %d", q.Line)
	case q.ID != "":
		return o.whyDocument(ctx, q.ID)
	}
	l, err := o.newest(ctx, commit.Query{Line: q.Line, To: maxTS}, othersListed+1)
	if err != nil {
		return Explanation{}, err
	}
	about := AboutLine{Line: q.Line, Others: []DocumentRow{}}
	o.askLedger(ctx, &about)
	if len(l.docs) == 0 {
		return Explanation{}, refuse(NotFound, "no document names line %d; %s", q.Line, about.Says)
	}
	ours := func(doc found) int {
		if doc.SysName == o.o.SysName {
			return 1
		}
		return 0
	}
	newest := slices.MaxFunc(l.docs, func(a, b found) int {
		return cmp.Or(a.Version.Compare(b.Version), ours(a)-ours(b))
	})
	slices.SortFunc(l.docs, func(a, b found) int { return cmp.Or(ours(b)-ours(a), b.Version.Compare(a.Version)) })
	e, err := o.whyDocument(ctx, l.docs[0].ID)
	if err != nil {
		return e, err
	}
	if newest.ID != e.ID { // a wrong sys_name must not hide behind an older result
		row := o.documentRow(newest)
		e.Summary = fmt.Sprintf(
			"a newer result names this line but belongs to %s, and this app is %q, so it never takes it: %s (%s). The newest of this environment: %s",
			environmentOf(row.SysName), o.o.SysName, row.ID, row.Status, e.Summary)
		e.Next = fmt.Sprintf("the newer one: nothing here, %s. This one: %s", notOurs, e.Next)
	}
	for _, doc := range l.docs[1:] {
		about.Others = append(about.Others, o.documentRow(doc))
	}
	e.Line = &about
	return e, nil
}

// environmentOf names the environment of a document in words.
func environmentOf(sysName string) string {
	if sysName == "" {
		return "no environment"
	}
	return fmt.Sprintf("the environment %q", sysName)
}

// askLedger asks the ledger about a line. An error is a part of the answer.
func (o *Ops) askLedger(ctx context.Context, about *AboutLine) {
	ctx, cancel := context.WithTimeout(ctx, ledgerWithin)
	defer cancel()
	err := o.stores(ctx, func(ctx context.Context, s Stores) error {
		rows, err := s.Ledger.LedgerLines(ctx, []int64{about.Line})
		if len(rows) > 0 {
			about.Ledger = &rows[0]
		}
		return err
	})
	switch {
	case err != nil:
		about.Says = "the ledger cannot be asked: " + errorText(err)
	case about.Ledger == nil:
		about.Says = "the ledger does not know it: no document was written to it"
	default:
		about.Says = fmt.Sprintf("the ledger says: %s by document %q",
			strings.NewReplacer("failed", "marked as failed").Replace(about.Ledger.Outcome), about.Ledger.Document)
		if about.Ledger.SysName != o.o.SysName {
			about.Says += fmt.Sprintf(" of the environment %q", about.Ledger.SysName)
		}
	}
}
