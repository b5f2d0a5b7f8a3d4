package ops

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
)

// evidenceListed is the default of EvidenceQuery.Limit.
const evidenceListed = 50

// EvidenceQuery selects evidence of poison messages. Empty fields mean any; the others must all match.
type EvidenceQuery struct {
	// Code is that of the last error.
	Code string `json:"error_code,omitempty"`
	// Line is the main line's id.
	Line int64 `json:"line,omitempty"`
	// Since and Until (exclusive) bound when the evidence was stored.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Limit is 1 to 1,000; 0 means 50. Page is the Next of the page before.
	Limit int    `json:"limit,omitempty"`
	Page  string `json:"page,omitempty"`
}

// EvidencePage is a page of episodes in the order of their folders' names: by line, then by document. It is not the order of time.
type EvidencePage struct {
	Evidence []EvidenceRow `json:"evidence"`
	// Unreadable counts episodes that a code was looked for in, and that do not say theirs. They are not in Evidence.
	Unreadable int `json:"unreadable,omitempty"`
	// Next is the EvidenceQuery.Page of the next page; empty at the end. A page may have fewer rows than Limit, and none, before the last.
	Next string `json:"next,omitempty"`
}

// EvidenceRow is the complete evidence of one failure of a document.
type EvidenceRow struct {
	// Folder is the folder in the environment.
	Folder   string `json:"folder"`
	Document string `json:"document"`
	// Line is the main line; 0 when it was unreadable.
	Line int64 `json:"line"`
	// Kind and Code are those of the last error.
	Kind string `json:"kind,omitempty"`
	Code string `json:"code,omitempty"`
	// At is when it was stored.
	At time.Time `json:"at"`
	// Replayed says which run replayed it last; nil when none did.
	Replayed *EvidenceReplay `json:"replayed,omitempty"`
	// Problems say what is wrong with its files.
	Problems []string `json:"problems,omitempty"`
}

// evidencePosition is where a list goes on: in the listing's page that begins at Marker, behind the folder After.
type evidencePosition struct {
	Marker string `json:"m,omitempty"`
	After  string `json:"a,omitempty"`
	// Sum is of the others and of the filters: the store does not say of a marker that it is none.
	Sum string `json:"s"`
}

// sum is without times: "the last day" is later with each page.
func (p evidencePosition) sum(q EvidenceQuery) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q", q.Code, q.Line, p.Marker, p.After))
	return hex.EncodeToString(sum[:8])
}

// page is the position as EvidenceQuery.Page; empty at the end.
func (p evidencePosition) page(q EvidenceQuery) (string, error) {
	if p == (evidencePosition{}) {
		return "", nil
	}
	p.Sum = p.sum(q)
	text, err := json.Marshal(p)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "ops: evidence", "encode", "the position cannot be written as JSON", err)
	}
	return base64.RawURLEncoding.EncodeToString(text), nil
}

// checkEvidence checks a query, and reads its position.
func (o *Ops) checkEvidence(q *EvidenceQuery) (p evidencePosition, err error) {
	if q.Limit == 0 {
		q.Limit = evidenceListed
	}
	if q.Limit, err = checkLimit(q.Limit); err != nil {
		return p, err
	}
	switch {
	case q.Line < 0:
		return p, refuse(Usage, "line: expected the id of a line, found %d", q.Line)
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return p, refuse(Usage, "until: expected a time after since")
	}
	if q.Code, err = o.code("error_code", q.Code); err != nil || q.Page == "" {
		return p, err
	}
	text, err := base64.RawURLEncoding.DecodeString(q.Page)
	if err != nil || json.Unmarshal(text, &p) != nil || p.Sum != p.sum(*q) {
		return p, refuse(Usage, "page: expected the next page of a list with the same filters")
	}
	return p, nil
}

// EvidenceList returns a page of complete evidence. Errors by kind: *RequestError (usage); infrastructure, throttled.
func (o *Ops) EvidenceList(ctx context.Context, q EvidenceQuery) (EvidencePage, error) {
	page := EvidencePage{Evidence: []EvidenceRow{}}
	at, err := o.checkEvidence(&q)
	if err != nil {
		return page, err
	}
	folder := commit.EvidenceRoot
	if q.Line > 0 {
		folder += fmt.Sprintf("/%d", q.Line)
	}
	late := o.late(evidenceWithin)
	for {
		files, next, err := o.p.Evidence.FilesBelow(ctx, folder, at.Marker)
		if err != nil {
			return page, err
		}
		left := q.rows(files, at.After)
		for ended := false; len(left) > 0 && !ended; {
			taken, err := o.take(ctx, &page, q, left)
			if err != nil {
				return page, err
			}
			at.After, left = left[taken-1].Folder, left[taken:]
			ended = len(page.Evidence) == q.Limit || late()
		}
		if len(left) == 0 {
			at = evidencePosition{Marker: next}
		}
		if len(left) > 0 || next == "" || len(page.Evidence) == q.Limit || late() {
			page.Next, err = at.page(q)
			return page, err
		}
	}
}

// rows makes a row of each complete episode among files that the times select, behind a folder.
func (q EvidenceQuery) rows(files []EvidenceFile, after string) (rows []EvidenceRow) {
	for _, f := range files {
		name, ok := commit.ReadEvidenceName(f.Name)
		switch {
		case !ok || name.File != commit.EvidenceMetadata:
		case name.Folder == after: // what was given ends here, in whatever order the store lists
			rows = nil
		case f.At.Before(q.Since) || (!q.Until.IsZero() && !f.At.Before(q.Until)):
		default:
			rows = append(rows, EvidenceRow{Folder: name.Folder, Document: name.DocumentID, Line: name.Main, At: f.At})
		}
	}
	return rows
}

// take reads the files of the first rows, and adds those that match to the page until it is full. It returns how many it took.
func (o *Ops) take(ctx context.Context, page *EvidencePage, q EvidenceQuery, rows []EvidenceRow) (taken int, err error) {
	rows = slices.Clone(rows[:min(len(rows), filesAtOnce)])
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(filesAtOnce)
	for i := range rows {
		group.Go(func() error { return o.readRow(ctx, &rows[i], q.Code) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	for i, row := range rows {
		switch {
		case row.Document == "": // another program wrote it
		case q.Code != "" && row.Code == "":
			page.Unreadable++
		case q.Code == "" || row.Code == q.Code:
			page.Evidence = append(page.Evidence, row)
		}
		if len(page.Evidence) == q.Limit {
			return i + 1, nil
		}
	}
	return len(rows), nil
}

// readRow reads the files of an episode that its row needs. A row with another code than that asked for needs no more.
func (o *Ops) readRow(ctx context.Context, row *EvidenceRow, code string) error {
	row.At = o.in(row.At)
	failed, err := readJSON[commit.PillError](ctx, o, row.Folder, commit.EvidenceError, &row.Problems)
	if err != nil {
		return err
	}
	if failed != nil {
		row.Kind, row.Code = failed.Kind, failed.Code
	}
	if row.Document == "" { // the name has only its beginning
		m, err := readJSON[commit.PillMetadata](ctx, o, row.Folder, commit.EvidenceMetadata, &row.Problems)
		if err != nil {
			return err
		}
		if m != nil {
			row.Document = m.DocumentID
		}
	}
	if code != "" && row.Code != code {
		return nil
	}
	var problems []string
	if row.Replayed, err = readJSON[EvidenceReplay](ctx, o, row.Folder, replayedJSON, &problems); err != nil {
		return err
	}
	problems = slices.DeleteFunc(problems, func(p string) bool { return p == missingFile(replayedJSON) }) // most were never replayed
	row.Problems = append(row.Problems, problems...)
	return nil
}
