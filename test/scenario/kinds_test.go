package scenario

// badKind is a way in which documents are bad by themselves.
type badKind struct {
	name string
	make func(w *world) like
}

// missingLines are documents whose lines do not exist.
func missingLines() badKind {
	return badKind{"missing", func(*world) like { return like{kind: "missing", missing: true} }}
}

// refusedOnes are documents that a constraint never takes.
func refusedOnes() badKind {
	return badKind{"refused", func(w *world) like { return like{kind: "refused", behaves: w.refused(always())} }}
}

// lockedOnes are documents whose lines another program has locked.
func lockedOnes() badKind {
	return badKind{"locked", func(w *world) like { return like{kind: "locked", behaves: w.locked(always())} }}
}

// own are the kinds that are a failure of the document's own.
func own() []badKind { return []badKind{missingLines(), refusedOnes()} }

// spread puts documents on all ranges.
func (l like) spread() like {
	l.rng = anyRange
	return l
}
