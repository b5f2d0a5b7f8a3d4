package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"maps"
	"slices"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/events"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// A look compares while documents and lines change: a document and its lines are read one after the other, and SQL is
// written before the document. So what does not fit is a suspect at first. A second look, settled later, finds it: if
// neither the document's _etag, nor the ledger's row, nor the line's rows changed meanwhile, they were so at one
// moment, and longer than any write waits for its record.
//
// What fits is not asked for again: had it changed meanwhile, a later comparison would find it by its _ts.

// look is one look in one step.
type look struct {
	*Reconcile
	Circumstances

	changes *changes
}

// look begins the looks of a step.
func (r *Reconcile) look(ctx context.Context, c *changes) (*look, error) {
	adopted, err := r.p.Findings.AdoptedAt(ctx)
	return &look{r, Circumstances{
		SysName: r.o.SysName, Reader: r.o.Reader, Now: r.o.Now(), AdoptedAt: adopted,
	}, c}, err
}

// readMarks reads who marked those of the documents that say so. It comes after the documents: a mark is audited first.
func (l *look) readMarks(ctx context.Context, docs iter.Seq[invoice.Document]) (err error) {
	var ids []string
	for doc := range docs {
		if doc.State.Outcome == invoice.OutcomeManual {
			ids = append(ids, doc.ID)
		}
	}
	if l.Marks = nil; len(ids) > 0 {
		l.Marks, err = l.p.Findings.Marks(ctx, ids)
	}
	return err
}

// document reads a document; false if nobody can tell which it is.
func (l *look) document(raw []byte) (invoice.Document, bool) {
	doc, err := l.Reader.Read(raw, l.Now)
	return doc, err == nil
}

// read reads documents; those that do not exist are missing in the result. One that cannot be read is there, and
// promises nothing.
func (l *look) read(ctx context.Context, ids []string) (map[string]invoice.Document, error) {
	docs := map[string]invoice.Document{}
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(ids))), documentsAStep) {
		charge, unreadable := 0.0, false
		q := commit.Query{IDs: chunk, Members: l.Reader.Mapping.Members(), Size: commit.MaxPage}
		err := commit.Each(ctx, l.p.Finder, q, func(page commit.Page) (bool, error) {
			for _, raw := range page.Documents {
				doc, ok := l.document(raw)
				if unreadable = unreadable || !ok; ok {
					docs[doc.ID] = doc
				}
			}
			charge += page.Charge
			return true, nil
		})
		if err == nil {
			err = l.pace.Spend(ctx, charge)
		}
		if err != nil {
			return nil, err
		}
		for _, id := range chunk { // which of them it is, nobody can tell
			if _, known := docs[id]; unreadable && !known {
				docs[id] = invoice.Document{ID: id, Version: invoice.Version{Key: invoice.Key(id)}}
			}
		}
	}
	return docs, nil
}

// lines reads lines by their ids.
func (l *look) lines(ctx context.Context, ids []int64) (map[int64]Line, error) {
	lines := map[int64]Line{}
	for chunk := range slices.Chunk(slices.Compact(slices.Sorted(slices.Values(ids))), MaxLines) {
		found, err := l.p.Rows.Lines(ctx, chunk)
		if err != nil {
			return nil, err
		}
		for _, line := range found {
			lines[line.ID] = line
		}
	}
	return lines, nil
}

// verdict is what a subject is; a finding has seen.
type verdict struct {
	class Class
	seen  Seen
	// err is an impossible cell.
	err error
	// newest is the document that a release would write; the zero document for other classes.
	newest invoice.Document
}

// written is the document that a night would write, of those that were read.
func (v verdict) written(docs map[string]invoice.Document) invoice.Document {
	if v.newest.ID != "" {
		return v.newest
	}
	return docs[v.seen.Document]
}

func isFinding(c Class) bool { return slices.Contains(FindingClasses(), c) }

// judge judges a subject. The key lacks the class.
func judge(s Subject, c Cell, key Key, mark string, detail func() string) verdict {
	rule, err := Judge(s, c)
	return verdictOf(rule, err, key, mark, detail)
}

// verdictOf is the verdict of a rule. err is an impossible cell.
func verdictOf(rule Rule, err error, key Key, mark string, detail func() string) verdict {
	v := verdict{class: rule.Class, seen: Seen{Key: key}, err: err}
	switch {
	case err != nil:
		v.class = Impossible
	case isFinding(rule.Class):
		key.Class = rule.Class
		v.seen = Seen{Key: key, Mark: mark, Detail: fault.Truncate(detail(), MaxDetail), Mends: rule.Mends}
	}
	return v
}

// markOf is Seen.Mark; the zero document stands for one that is gone.
func markOf(line Line, docs ...invoice.Document) string {
	text := line.Ledger.WriteID + "\n" + line.RowHash
	for _, d := range docs {
		text += "\n" + d.ETag
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// judgeLine judges a line with the document that its ledger row names; false for a line that is not in the
// environment's ledger.
func (l *look) judgeLine(line Line, docs map[string]invoice.Document) (v verdict, ours bool) {
	if line.Ledger.Outcome == "" || line.Ledger.SysName != l.SysName {
		return verdict{class: Consistent}, false
	}
	doc := docs[line.Ledger.DocumentID]
	cell := Cell{Document: l.DocState(doc), Ledger: LedgerStateOf(doc, line.Ledger), Rows: line.Rows}
	key := Key{Line: line.ID, Document: line.Ledger.DocumentID}
	return judge(SubjectLine, cell, key, markOf(line, doc), func() string { return lineDetail(doc, line) }), true
}

// judgeLink judges a document with one of its lines, whatever the ledger names for the line.
func (l *look) judgeLink(doc invoice.Document, line Line) verdict {
	cell := Cell{Document: l.DocState(doc), Ledger: LedgerStateOf(doc, line.Ledger), Rows: line.Rows}
	return judge(SubjectLink, cell, Key{Line: line.ID, Document: doc.ID}, markOf(line, doc), func() string {
		return linkDetail(doc, cell, line)
	})
}

// judgeLines judges lines of the environment's ledger, each with its document.
func (l *look) judgeLines(ctx context.Context, ids []int64) (all []verdict, err error) {
	lines, err := l.lines(ctx, ids)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range lines {
		names = append(names, line.Ledger.DocumentID)
	}
	docs, err := l.read(ctx, names)
	if err == nil {
		err = l.readMarks(ctx, maps.Values(docs))
	}
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		if v, ours := l.judgeLine(line, docs); ours {
			all = append(all, v)
		}
	}
	return all, nil
}

// judgeDocuments judges documents, each with each of its lines, and the lines that are left to newer documents.
func (l *look) judgeDocuments(ctx context.Context, docs []invoice.Document) (all []verdict, err error) {
	lines, err := l.lines(ctx, linesOf(docs))
	if err == nil {
		err = l.readMarks(ctx, slices.Values(docs))
	}
	if err != nil {
		return nil, err
	}
	var newer []int64
	for _, doc := range docs {
		for _, id := range linesOf([]invoice.Document{doc}) {
			all = append(all, l.judgeLink(doc, lines[id]))
			if slices.Contains(sent(), l.DocState(doc)) && LedgerStateOf(doc, lines[id].Ledger) == LedgerNewer {
				newer = append(newer, id)
			}
		}
	}
	left, err := l.judgeAllLeft(ctx, newer, true)
	return append(all, left...), err
}

// linesOf lists the lines of documents.
func linesOf(docs []invoice.Document) []int64 {
	var ids []int64
	for _, doc := range docs {
		if doc.Main > 0 {
			ids = append(ids, doc.Main)
		}
		ids = append(ids, doc.Duplicates...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// tellImpossible tells what is impossible: a mistake of ours, which must not end the comparison of the others.
func (l *look) tellImpossible(ctx context.Context, v verdict) {
	if v.err != nil {
		events.For(ctx, l.o.Log).Write(events.CompareImpossible,
			events.Fields{Document: v.seen.Document, Line: v.seen.Line}.Of(v.err))
	}
}

// again looks at what findings and suspects are about.
func (l *look) again(ctx context.Context, known []Finding) (stepped, error) {
	var ids []int64
	var names []string
	for _, f := range known {
		ids = append(ids, f.Line)
		if !f.Class.ofLine() {
			names = append(names, f.Document)
		}
	}
	lines, err := l.lines(ctx, ids)
	if err != nil {
		return stepped{}, err
	}
	for _, f := range known {
		if f.Class.ofLine() {
			names = append(names, lines[f.Line].Ledger.DocumentID)
		}
	}
	docs, err := l.read(ctx, slices.DeleteFunc(names, func(id string) bool { return id == "" }))
	if err == nil {
		err = l.readMarks(ctx, maps.Values(docs))
	}
	if err != nil {
		return stepped{}, err
	}
	verdicts := make([]verdict, len(known))
	for i, f := range known {
		v, doc := verdict{class: Consistent}, docs[f.Document]
		switch {
		case f.Class.ofLeft():
			line := lines[f.Line]
			if v, err = l.judgeLeft(ctx, line, docs[line.Ledger.DocumentID]); err != nil {
				return stepped{}, err
			}
		case f.Class.ofLine():
			v, _ = l.judgeLine(lines[f.Line], docs)
		case slices.Contains(linesOf([]invoice.Document{doc}), f.Line):
			v = l.judgeLink(doc, lines[f.Line])
		}
		l.tellImpossible(ctx, v)
		verdicts[i] = v
	}
	if err := l.leavePeople(ctx, verdicts, docs); err != nil {
		return stepped{}, err
	}
	a := secondLook{map[Key]Seen{}, map[Key]bool{}, map[Class]int{}}
	for i, f := range known {
		a.take(f, verdicts[i])
	}
	done := stepped{counts: a.counts, put: slices.Collect(maps.Values(a.put))}
	for key := range a.drop {
		if _, put := a.put[key]; !put {
			done.drop = append(done.drop, key)
		}
	}
	return done, nil
}

// leavePeople leaves findings to people whose document has a line that may be theirs: the night writes a document whole
// or not at all. A line that the ledger lacks is none.
func (l *look) leavePeople(ctx context.Context, verdicts []verdict, docs map[string]invoice.Document) error {
	var mended []invoice.Document
	for _, v := range verdicts {
		if v.seen.Mends {
			mended = append(mended, v.written(docs))
		}
	}
	lines, err := l.lines(ctx, linesOf(mended))
	if err != nil {
		return err
	}
	var names []string
	for _, line := range lines {
		if name := line.Ledger.DocumentID; name != "" && docs[name].ID == "" {
			names = append(names, name)
		}
	}
	holders, err := l.read(ctx, names)
	if err != nil {
		return err
	}
	maps.Copy(holders, docs)
	for i, v := range verdicts {
		doc := v.written(docs)
		its := linesOf([]invoice.Document{doc})
		if v.newest.ID != "" { // its rule has looked at the line itself
			its = slices.DeleteFunc(its, func(id int64) bool { return id == v.seen.Line })
		}
		verdicts[i].seen.Mends = v.seen.Mends && !slices.ContainsFunc(its, func(id int64) bool {
			line := lines[id]
			notComparable := line.Rows == RowsUnknown && line.Ledger.Outcome != "" && !line.Ledger.Marked()
			return line.Rows == RowsEdited || notComparable || LedgerStateOf(doc, line.Ledger) == LedgerUnknown ||
				slices.Contains(byHand(), l.DocState(holders[line.Ledger.DocumentID]))
		})
	}
	return nil
}

// secondLook is what a second look makes of findings and suspects.
type secondLook struct {
	put    map[Key]Seen
	drop   map[Key]bool
	counts map[Class]int
}

// take takes the verdict of a second look. What the first look did not see so stays a suspect, or what it was.
func (a secondLook) take(f Finding, v verdict) {
	switch same := v.seen.Key == f.Key; {
	case v.err != nil:
		a.counts[Impossible]++
	case same && v.seen.Mark == f.Mark:
		v.seen.Sure = true
		a.put[f.Key] = v.seen
		if a.counts[v.class]++; v.class == Edited && !f.Sure {
			a.counts[NewEdits]++
		}
	case isFinding(v.class):
		if _, taken := a.put[v.seen.Key]; !taken {
			a.put[v.seen.Key] = v.seen
		}
		a.drop[f.Key] = true
		a.counts[Changing]++
	default:
		a.drop[f.Key] = true
		a.counts[v.class]++
	}
}
