package adopt

import "context"

// Reader reads the ledger's rows.
type Reader interface {
	// Rows returns the ledger rows of the given lines, in no order; unknown lines have none. Errors by kind:
	// infrastructure, throttled.
	Rows(ctx context.Context, lines []int64) ([]Row, error)
	// RowsOf returns the ledger rows that a document has, in no order. Rows of a document whose id differs only in case may be among them. It
	// reads the whole ledger. Errors by kind: infrastructure, throttled.
	RowsOf(ctx context.Context, document string) ([]Row, error)
}

// Scratch is an empty temporary ledger for a dry run.
type Scratch interface {
	Ledger
	// Copy adds rows unchanged where it has no row of their line. They belong to no run.
	Copy(ctx context.Context, rows []Row) error
}

// Preview is a Ledger for dry runs: it copies the present rows of each page's lines into the scratch and writes the
// page there. A run on it counts what a complete run would do now, from watermark 0, and changes nothing.
func Preview(present Reader, scratch Scratch) Ledger {
	return preview{Scratch: scratch, present: present}
}

type preview struct {
	Scratch
	present Reader
}

// Page implements Ledger.
func (p preview) Page(ctx context.Context, page Page) (Written, error) {
	if len(page.Rows) > 0 {
		lines := make([]int64, len(page.Rows))
		for i, r := range page.Rows {
			lines[i] = r.Line
		}
		rows, err := p.present.Rows(ctx, lines)
		if err != nil {
			return Written{}, err
		}
		if err := p.Copy(ctx, rows); err != nil {
			return Written{}, err
		}
	}
	return p.Scratch.Page(ctx, page)
}
