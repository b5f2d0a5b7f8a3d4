package adopt

import "context"

// Reader reads the ledger's rows.
type Reader interface {
	// Rows gives the ledger's rows of those lines that it knows, in no order. Errors by kind: infrastructure, throttled.
	Rows(ctx context.Context, lines []int64) ([]Row, error)
}

// Scratch is an empty ledger of nobody's, which a dry run works on.
type Scratch interface {
	Ledger
	// Copy puts rows in as they are, where it knows nothing of their lines. They are from no run.
	Copy(ctx context.Context, rows []Row) error
}

// Preview is a ledger whose real counterpart is only read: of each page's lines the present rows are copied into the
// scratch, and the page is written there. A run on it counts what a whole run would count now, and writes nothing; it begins
// at the start, however far the real one is.
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
