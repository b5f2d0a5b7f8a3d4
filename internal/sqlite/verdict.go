package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
	"sqlwriter/internal/writer"
)

// verdicts is what outcomes.sql says, by document.
type verdicts struct {
	outcomes []writer.Outcome
	// content and marks count the lines that the request has to write in IVCE_DTL.
	content, marks int64
	// wins has, for each line written by this request, the item that won it; filled for a preview only.
	wins map[int64]int
}

// noEvidence is what verdict.sql says of a line without evidence.
const noEvidence = "none"

// verdicts reads the verdict on every line and draws the documents' from them.
func (r *request) verdicts(ctx context.Context) (verdicts, error) {
	v := verdicts{outcomes: make([]writer.Outcome, len(r.items)), wins: map[int64]int{}}
	newest := make([]invoice.Version, len(r.items)) // the version of each outcome's SupersededBy
	rows, err := r.tx.QueryContext(ctx, r.text[stOutcomes])
	if err != nil {
		return v, classify("sqlite: apply: "+stOutcomes, err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	for rows.Next() {
		if err := r.scanVerdict(rows, &v, newest); err != nil {
			return v, err
		}
	}
	if err := rows.Err(); err != nil {
		return v, classify("sqlite: apply: "+stOutcomes, err)
	}
	for doc := range v.outcomes {
		o := &v.outcomes[doc]
		if len(o.Rows) != r.items[doc].Rows() {
			return v, fault.New(fault.Internal, "sqlite: apply", "verdict_count",
				"document %s: expected %d verdicts, found %d", r.items[doc].DocumentID, r.items[doc].Rows(), len(o.Rows))
		}
		o.DocumentID, o.Verdict = r.items[doc].DocumentID, draw(r.items[doc], o.Rows)
	}
	return v, r.after(ctx, stOutcomes)
}

// scanVerdict takes in one line's verdict.
func (r *request) scanVerdict(rows *sql.Rows, v *verdicts, newest []invoice.Version) error {
	var (
		doc, position int
		verdict       string
		winner        bool
		by, key       sql.NullString
		us            sql.NullInt64
	)
	if err := rows.Scan(&doc, &position, &verdict, &winner, &by, &us, &key); err != nil {
		return classify("sqlite: apply: "+stOutcomes, fmt.Errorf("scan: %w", err))
	}
	it, o := r.items[doc], &v.outcomes[doc]
	line := lineAt(it, position)
	if verdict == noEvidence {
		return fault.New(fault.Contention, "sqlite: apply", "verdict_without_evidence",
			"document %s, line %d: the ledger shows neither this write nor this content nor anything newer", it.DocumentID, line)
	}
	if winner && verdict == string(writer.Applied) {
		v.wins[line] = doc
		if it.FailureMark {
			v.marks++
		} else {
			v.content++
		}
	}
	if o.Rows == nil {
		o.Rows = make([]writer.RowOutcome, 0, it.Rows())
	}
	o.Rows = append(o.Rows, writer.RowOutcome{DetailID: line, Verdict: writer.Verdict(verdict), By: by.String})
	if holder := (invoice.Version{US: us.Int64, Key: key.String}); by.Valid && (o.SupersededBy == "" || newest[doc].Compare(holder) < 0) {
		o.SupersededBy, newest[doc] = by.String, holder
	}
	return nil
}

// draw is the verdict on a document from those on its lines, as writer.Outcome says. A mark whose lines are all missing
// is missing: nothing else is true of it.
func draw(it writer.Item, rows []writer.RowOutcome) writer.Verdict {
	n := map[writer.Verdict]int{}
	for _, r := range rows {
		n[r.Verdict]++
	}
	switch {
	case n[writer.Missing] > 0 && (!it.FailureMark || n[writer.Missing] == len(rows)):
		return writer.Missing
	case n[writer.Applied] > 0:
		return writer.Applied
	case n[writer.Unchanged] > 0:
		return writer.Unchanged
	default:
		return writer.Superseded
	}
}

// beforeAndAfter fills in a preview's values: what the lines hold now and what they would hold after a write.
func (r *request) beforeAndAfter(ctx context.Context, v verdicts) error {
	before, err := r.present(ctx)
	if err != nil {
		return err
	}
	for doc := range v.outcomes {
		for i := range v.outcomes[doc].Rows {
			row := &v.outcomes[doc].Rows[i]
			row.Before = before[row.DetailID]
			row.After = row.Before
			winner, ok := v.wins[row.DetailID]
			if !ok {
				continue
			}
			if it := r.items[winner]; it.FailureMark {
				row.After = r.marked(row.Before)
			} else {
				row.After = invoice.RowValues(it.Values, it.Main, row.DetailID)
			}
		}
	}
	return nil
}

// marked is what a failure mark makes of a line's values.
func (r *request) marked(before []invoice.Value) []invoice.Value {
	after := append([]invoice.Value(nil), before...)
	for i, c := range r.columns {
		if c.Table == invoice.Detail && c.Name == invoice.StatusColumn {
			after[i] = invoice.Of(invoice.StatusAIError)
		}
	}
	return after
}

// present reads the values that the lines of the request hold now.
func (r *request) present(ctx context.Context) (map[int64][]invoice.Value, error) {
	rows, err := r.tx.QueryContext(ctx, r.text[stPreviewBefore])
	if err != nil {
		return nil, classify("sqlite: preview", err)
	}
	defer func() { _ = rows.Close() }() // a failure is in rows.Err
	out := map[int64][]invoice.Value{}
	for rows.Next() {
		var line int64
		texts := make([]sql.NullString, len(r.columns))
		to := make([]any, 0, len(texts)+1)
		to = append(to, &line)
		for i := range texts {
			to = append(to, &texts[i])
		}
		if err := rows.Scan(to...); err != nil {
			return nil, classify("sqlite: preview", err)
		}
		values := make([]invoice.Value, len(texts))
		for i, s := range texts {
			values[i] = invoice.Value{Null: !s.Valid, Text: s.String}
		}
		out[line] = values
	}
	if err := rows.Err(); err != nil {
		return nil, classify("sqlite: preview", err)
	}
	return out, nil
}
