package run

import "slices"

// Pattern is a way to keep rows and messages consistent (docs/requirements.md R68). All patterns share one loop (handOff.work).
type Pattern struct {
	Name string
	// Chunk is how many documents get their rows before the first of their messages is sent.
	Chunk int
	// Initial is the first status of a batch. With Confirm it becomes queued when its message is accepted.
	Initial BatchStatus
	Confirm bool
	// Meaning is one line for operators.
	Meaning string
}

// The sizes of a hand-off.
const (
	// BatchSize is the most documents of a batch.
	BatchSize = 100
	// checkpointSize is how many documents get their rows in one transaction, together with the watermark.
	checkpointSize = 1000
	// twoPhaseMax is the most documents for which two_phase is chosen.
	twoPhaseMax = 10_000
)

// The names of the patterns.
const (
	TwoPhase   = "two_phase"
	Checkpoint = "checkpoint"
	Optimistic = "optimistic"
)

// Patterns returns all patterns.
func Patterns() []Pattern {
	return []Pattern{
		{TwoPhase, twoPhaseMax, PendingQueue, true, "all rows, then all messages, then queued: for up to 10,000 documents"},
		{Checkpoint, checkpointSize, PendingQueue, true, "1,000 documents at a time, each with the watermark: resumable, bounded memory"},
		{Optimistic, checkpointSize, Queued, false, "rows begin as queued: one statement less; a batch whose message is lost is found after half an hour or more"},
	}
}

// PatternOf finds a pattern by name.
func PatternOf(name string) (Pattern, bool) {
	i := slices.IndexFunc(Patterns(), func(p Pattern) bool { return p.Name == name })
	if i < 0 {
		return Pattern{}, false
	}
	return Patterns()[i], true
}

// ChoosePattern returns the default pattern for a number of documents. atLeast means that there may be more.
func ChoosePattern(documents int, atLeast bool) string {
	if atLeast || documents > twoPhaseMax {
		return Checkpoint
	}
	return TwoPhase
}

// share returns a run's part of the room for batches, so that a long run leaves some to the others.
func share(room, runs int) int {
	if room <= 0 {
		return 0
	}
	return max(1, room/max(1, runs))
}
