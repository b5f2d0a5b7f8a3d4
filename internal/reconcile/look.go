package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A look compares while documents and lines change. What is judged must have been so at one moment:
//
//   - the documents are read, then the lines, then the etags of the same documents;
//   - a document with the same etag before and after had this content when its lines were read, and the lines are read at one moment
//     (Rows.Lines). So documents and lines are judged as they were at that moment;
//   - any other document is looked at again, with all its lines, at most tries times. Then it is Changing.
//
// What is consistent after the first two reads is not asked for again: had it changed meanwhile, a later comparison would find it by its
// _ts.

// tries bounds how often one thing is looked at.
const tries = 5

// look collects what was found in one step.
type look struct {
	*Reconcile
	Circumstances

	seen   map[Key]Seen
	counts map[Class]int
	// undecidedLines and undecidedDocuments changed each time, or are in work.
	undecidedLines     map[int64]bool
	undecidedDocuments map[string]bool
}

// look begins the looks of a step.
func (r *Reconcile) look(ctx context.Context) (*look, error) {
	l := &look{
		Reconcile: r, Circumstances: Circumstances{SysName: r.o.SysName, Now: r.o.Now()}, seen: map[Key]Seen{}, counts: map[Class]int{},
		undecidedLines: map[int64]bool{}, undecidedDocuments: map[string]bool{},
	}
	if since, runs := r.p.Breaker.ClosedSince(ctx); runs {
		l.FlowSince = since
		if since.IsZero() { // it was never anything else
			l.FlowSince = time.Unix(0, 0)
		}
	}
	var err error
	l.AdoptedAt, err = r.p.Findings.AdoptedAt(ctx)
	return l, err
}

// snapshot is a document as it was read; there is false if it did not exist. Without it the document is the zero one.
type snapshot struct {
	id    string
	there bool
	doc   invoice.Document
}

// snapshotOf reads a document; false if nobody can tell which it is.
func (l *look) snapshotOf(raw []byte) (snapshot, bool) {
	doc, err := invoice.Read(raw, l.Now)
	if err != nil {
		return snapshot{}, false
	}
	return snapshot{id: doc.ID, there: true, doc: doc}, true
}

// read reads at most 100 documents.
func (l *look) read(ctx context.Context, ids []string) (map[string]snapshot, error) {
	docs := map[string]snapshot{}
	if len(ids) == 0 {
		return docs, nil
	}
	raws, charge, err := l.p.Documents.ReadMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		docs[id] = snapshot{id: id}
	}
	for _, raw := range raws {
		if s, ok := l.snapshotOf(raw); ok {
			docs[s.id] = s
		}
	}
	return docs, l.pace.Spend(ctx, charge)
}

// heads reads the documents that exist, without their content, by their ids.
func (l *look) heads(ctx context.Context, ids []string) (map[string]invoice.Document, error) {
	heads := map[string]invoice.Document{}
	for chunk := range slices.Chunk(ids, headsOfOne) {
		raws, charge, err := l.p.Documents.Heads(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, raw := range raws {
			if doc, err := invoice.Read(raw, l.Now); err == nil {
				heads[doc.ID] = doc
			}
		}
		if err := l.pace.Spend(ctx, charge); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// still reports whether the document is as it was read.
func (s snapshot) still(heads map[string]invoice.Document) bool {
	head, there := heads[s.id]
	return there == s.there && head.ETag == s.doc.ETag
}

// readLines reads at most MaxLines lines, by their ids.
func (l *look) readLines(ctx context.Context, ids []int64) (map[int64]Line, error) {
	lines := map[int64]Line{}
	if len(ids) == 0 {
		return lines, nil
	}
	found, err := l.p.Rows.Lines(ctx, slices.Compact(slices.Sorted(slices.Values(ids))))
	for _, line := range found {
		lines[line.ID] = line
	}
	return lines, err
}

// verdict is what a subject is; a finding has seen.
type verdict struct {
	class Class
	seen  Seen
	// err is an impossible cell.
	err error
}

// suspect reports whether the verdict needs a second look at the document.
func (v verdict) suspect() bool { return v.err != nil || isFinding(v.class) }

func isFinding(c Class) bool { return slices.Contains(FindingClasses(), c) }

// judge judges a subject. The key lacks the class.
func judge(s Subject, c Cell, key Key, rowHash string, detail func() string) verdict {
	rule, err := Judge(s, c)
	v := verdict{class: rule.Class, seen: Seen{Key: key}, err: err}
	switch {
	case err != nil:
		v.class = Impossible
	case isFinding(rule.Class):
		key.Class = rule.Class
		v.seen = Seen{Key: key, RowHash: rowHash, Detail: fault.Truncate(detail(), MaxDetail), Mend: rule.Mend}
	}
	return v
}

// take counts a verdict that is final. What is impossible is a mistake of ours: it is told, and must not end the comparison of the others.
func (l *look) take(ctx context.Context, v verdict) {
	l.counts[v.class]++
	switch {
	case v.err != nil:
		l.undecidedLines[v.seen.Line], l.undecidedDocuments[v.seen.Document] = true, true
		events.For(ctx, l.o.Log).Write(events.CompareImpossible, events.Fields{Document: v.seen.Document, Line: v.seen.Line}.Of(v.err))
	case isFinding(v.class):
		l.seen[v.seen.Key] = v.seen
	}
}

// lines looks at lines of the environment's ledger with the documents that it names.
func (l *look) lines(ctx context.Context, ids []int64) error {
	for chunk := range slices.Chunk(ids, documentsAStep) {
		if err := l.someLines(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) someLines(ctx context.Context, ids []int64) error {
	docs := map[string]snapshot{} // nobody knows yet which to read
	for try := 0; ; try++ {
		lines, err := l.readLines(ctx, ids)
		if err != nil {
			return err
		}
		heads, err := l.heads(ctx, slices.Collect(maps.Keys(docs)))
		if err != nil {
			return err
		}
		ids = nil
		var names []string
		for _, line := range lines {
			if line.Ledger.Outcome == "" || line.Ledger.SysName != l.SysName {
				continue // it is no line of the environment's ledger any more
			}
			if s, read := docs[line.Ledger.DocumentID]; !read || !s.still(heads) {
				ids, names = append(ids, line.ID), append(names, line.Ledger.DocumentID)
			} else {
				l.take(ctx, l.judgeLine(line, s))
			}
		}
		if len(ids) == 0 {
			return nil
		}
		if try == tries {
			l.counts[Changing] += len(ids)
			for _, id := range ids {
				l.undecidedLines[id] = true
			}
			return nil
		}
		slices.Sort(ids)
		slices.Sort(names)
		if docs, err = l.read(ctx, slices.Compact(names)); err != nil {
			return err
		}
	}
}

func (l *look) judgeLine(line Line, s snapshot) verdict {
	cell := Cell{
		Document: l.DocState(s.doc, s.there), Ledger: LedgerStateOf(s.doc, line.Ledger), Rows: line.Rows, Evidence: EvidenceNotLooked,
		Fresh: line.Ledger.Fresh(l.Now),
	}
	return judge(SubjectLine, cell, Key{Line: line.ID, Document: line.Ledger.DocumentID}, line.RowHash, func() string { return lineDetail(line, s) })
}

// documents looks at documents of the environment, read before: each with each of its lines, and each with its evidence.
func (l *look) documents(ctx context.Context, docs []snapshot) error {
	for try := 1; len(docs) > 0; try++ {
		verdicts, err := l.judgeDocuments(ctx, docs)
		if err != nil {
			return err
		}
		var suspects []string
		for id, vs := range verdicts {
			if slices.ContainsFunc(vs, verdict.suspect) {
				suspects = append(suspects, id)
			}
		}
		slices.Sort(suspects)
		heads, err := l.heads(ctx, suspects)
		if err != nil {
			return err
		}
		var again []string
		for _, s := range docs {
			if slices.Contains(suspects, s.id) && !s.still(heads) {
				again = append(again, s.id)
				continue
			}
			for _, v := range verdicts[s.id] {
				l.take(ctx, v)
				l.undecidedDocuments[s.id] = l.undecidedDocuments[s.id] || v.class == Changing
			}
		}
		if try == tries {
			l.counts[Changing] += len(again)
			for _, id := range again {
				l.undecidedDocuments[id] = true
			}
			return nil
		}
		if docs, err = l.readAgain(ctx, again); err != nil {
			return err
		}
	}
	return nil
}

// readAgain reads those of the documents that still are the environment's, and counts those that do not exist.
func (l *look) readAgain(ctx context.Context, ids []string) ([]snapshot, error) {
	read, err := l.read(ctx, ids)
	var docs []snapshot
	for _, id := range ids {
		s, first := read[id]
		delete(read, id) // a person may name one twice
		switch {
		case !first:
		case !s.there:
			l.counts[DocumentGone]++
		case s.doc.SysName == l.SysName:
			docs = append(docs, s)
		}
	}
	return docs, err
}

// judgeDocuments judges documents as they were read, with their lines as they are now.
func (l *look) judgeDocuments(ctx context.Context, docs []snapshot) (map[string][]verdict, error) {
	type link struct {
		s    snapshot
		line int64
	}
	var links []link
	verdicts := map[string][]verdict{}
	for _, s := range docs {
		if s.doc.Main > 0 {
			links = append(links, link{s, s.doc.Main})
		}
		for _, line := range s.doc.Duplicates {
			links = append(links, link{s, line})
		}
	}
	for chunk := range slices.Chunk(links, MaxLines) {
		ids := make([]int64, len(chunk))
		for i, k := range chunk {
			ids[i] = k.line
		}
		lines, err := l.readLines(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, k := range chunk {
			verdicts[k.s.id] = append(verdicts[k.s.id], l.judgeLink(k.s, lines[k.line]))
		}
	}
	for _, s := range docs {
		leaveToPeople(verdicts[s.id])
		v, err := l.judgeDocument(ctx, s)
		if err != nil {
			return nil, err
		}
		if v.class != Consistent { // its lines are counted
			verdicts[s.id] = append(verdicts[s.id], v)
		}
	}
	return verdicts, nil
}

// leaveToPeople leaves all lines of a document to people if one is: a write of the document would write that one, too.
func leaveToPeople(verdicts []verdict) {
	if slices.ContainsFunc(verdicts, func(v verdict) bool { return isFinding(v.class) && v.seen.Mend == ByPeople }) {
		for i := range verdicts {
			verdicts[i].seen.Mend = ByPeople
		}
	}
}

func (l *look) judgeLink(s snapshot, line Line) verdict {
	cell := Cell{
		Document: l.DocState(s.doc, true), Ledger: LedgerStateOf(s.doc, line.Ledger), Rows: line.Rows, Evidence: EvidenceNotLooked,
		Fresh: line.Ledger.Fresh(l.Now),
	}
	return judge(SubjectLink, cell, Key{Line: line.ID, Document: s.id}, line.RowHash, func() string { return linkDetail(s.doc, cell, line) })
}

// judgeDocument judges a document alone. Evidence is asked for only where it should be.
func (l *look) judgeDocument(ctx context.Context, s snapshot) (verdict, error) {
	cell := Cell{Document: l.DocState(s.doc, true), Ledger: LedgerNone, Rows: RowsUnknown, Evidence: EvidenceNotLooked}
	if cell.Document == DocFailed || cell.Document == DocUnmarkable {
		if cell.Evidence = l.EvidenceState(s.doc, Episode{}, false); cell.Evidence == EvidenceNone {
			newest, there, err := l.p.Evidence.Newest(ctx, s.doc)
			if err != nil {
				return verdict{}, err
			}
			cell.Evidence = l.EvidenceState(s.doc, newest, there)
		}
	}
	return judge(SubjectDocument, cell, Key{Line: s.doc.Main, Document: s.id}, "", func() string { return documentDetail(s.doc) }), nil
}

// episodes looks at episodes of documents, of which it takes the newest. Only EvidenceWithoutFailed and DocumentGone come of it: the
// documents themselves are looked at when they change. What a head does not explain, the whole document may.
func (l *look) episodes(ctx context.Context, episodes []Episode) error {
	newest := map[Key]Episode{}
	for _, e := range episodes {
		key := Key{Line: e.line(), Document: e.DocumentID}
		if was, there := newest[key]; l.Now.Sub(e.At) < KeepsEvidence && (!there || e.After(was)) {
			newest[key] = e
		}
	}
	for chunk := range slices.Chunk(slices.SortedFunc(maps.Keys(newest), Key.compare), documentsAStep) {
		var ids []string
		for _, key := range chunk {
			ids = append(ids, key.Document)
		}
		ids = slices.Compact(ids)
		heads, err := l.heads(ctx, ids)
		if err != nil {
			return err
		}
		suspects := slices.DeleteFunc(ids, func(id string) bool {
			head, there := heads[id]
			return !there || !slices.ContainsFunc(chunk, func(key Key) bool {
				return key.Document == id && l.EvidenceState(head, newest[key], true) == EvidenceUnexplained
			})
		})
		whole, err := l.read(ctx, suspects)
		if err != nil {
			return err
		}
		for _, key := range chunk {
			doc, there := heads[key.Document]
			if s, read := whole[key.Document]; read {
				doc, there = s.doc, s.there
			}
			cell := Cell{Document: l.DocState(doc, there), Ledger: LedgerNone, Rows: RowsUnknown, Evidence: l.EvidenceState(doc, newest[key], true)}
			if v := judge(SubjectDocument, cell, key, "", func() string { return episodeDetail(newest[key]) }); v.class != PendingTooLong {
				l.take(ctx, v)
			}
		}
	}
	return nil
}
