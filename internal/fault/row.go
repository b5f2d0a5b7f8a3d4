package fault

import (
	"strconv"
	"strings"
)

// Row documents one code of a classifier: its meaning, its source, and its cost for the document. Adapters export their
// tables as Faults().
type Row struct {
	// Adapter is the code's origin: sqlserver, sqlite, cosmos, blob, or writer for our own rules.
	Adapter string
	// Code is Error.Code: "2628", "refused", "validation.too_long". A row may stand for several codes: "429/*" is 429
	// with any substatus, "500-599" is a range.
	Code string
	// Name is the vendor's name of the code, "SQLITE_BUSY"; usually empty.
	Name string
	// Kind and Condition are the adapter's classification.
	Kind      Kind
	Condition Condition
	// About limits the row to some calls: "one document". Empty means all.
	About string
	// Reason tells operators what the code means here.
	Reason string
	// Source is a vendor's page or a rule of ours.
	Source string
	// Own is the consequence if it differs from that of the kind and the condition; else zero.
	Own Consequence
	// Rest is true for the row that stands for all codes without a row.
	Rest bool
	// Covers reports whether the row stands for another code than those that Is knows. Nil means false.
	Covers func(code string) bool
}

// Consequence is the cost of a failure for its document, and what happens next, for people.
type Consequence struct {
	// Spends is Nothing or OneRetry, or says when which of them.
	Spends string
	Next   string
}

// Values of Consequence.Spends.
const (
	Nothing  = "nothing"
	OneRetry = "one of the document's 5 retries"
)

// Of sets the adapter of its rows.
func Of(adapter string, rows []Row) []Row {
	for i := range rows {
		rows[i].Adapter = adapter
	}
	return rows
}

// IsNumber reports whether a code is a whole number, as codes of databases are.
func IsNumber(code string) bool {
	_, err := strconv.Atoi(code)
	return err == nil
}

// AtStart is the consequence of a failure to open a dependency, before the app begins to work.
func AtStart() Consequence {
	return Consequence{
		Spends: Nothing,
		Next:   "the app tries to open it again every few seconds; Health says what is wrong, and batches wait",
	}
}

// OfACommand is the consequence of a failed operator's command.
func OfACommand() Consequence {
	return Consequence{Spends: Nothing, Next: "the command ends with this error; run it again once the cause is fixed"}
}

// Names reports whether a code is the row's Code or Name, whatever its case. A status also matches its rows with a
// substatus.
func (r Row) Names(code string) bool {
	status, _, _ := strings.Cut(r.Code, "/")
	for _, own := range []string{r.Code, r.Name, status} {
		if own != "" && strings.EqualFold(own, code) {
			return true
		}
	}
	return false
}

// StandsFor reports whether the row is about a code, by name or as one of several.
func (r Row) StandsFor(code string) bool { return r.Names(code) || r.Is(code) }

// Is reports whether errors with a code are the row's. "404" is an HTTP status without a word of the service's, "404/*"
// with any or none, "404/1003" with that one, and "500-599" a range with any.
func (r Row) Is(code string) bool {
	if r.Covers != nil && r.Covers(code) {
		return true
	}
	status, word, _ := strings.Cut(code, "/")
	if first, last, isRange := r.statuses(); isRange {
		n, err := strconv.Atoi(status)
		return err == nil && first <= n && n <= last
	}
	own, ownWord, _ := strings.Cut(r.Code, "/")
	return strings.EqualFold(own, status) && (ownWord == "*" || strings.EqualFold(ownWord, word))
}

// Several reports whether the row stands for more codes than one.
func (r Row) Several() bool {
	_, _, isRange := r.statuses()
	return r.Rest || r.Covers != nil || isRange || strings.HasSuffix(r.Code, "/*")
}

// statuses are the first and the last status of a row for a range.
func (r Row) statuses() (first, last int, isRange bool) {
	from, to, _ := strings.Cut(r.Code, "-")
	first, err := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err == nil && err2 == nil
}

// Consequence returns the row's own consequence, else that of its condition, else that of its kind.
func (r Row) Consequence() Consequence {
	if r.Own != (Consequence{}) {
		return r.Own
	}
	for _, c := range ConditionRules() {
		if c.Condition == r.Condition {
			return c.Consequence
		}
	}
	return consequenceOf(r.Kind)
}

func consequenceOf(k Kind) Consequence {
	for _, r := range Rules() {
		if r.Kind != k {
			continue
		}
		spends := Nothing
		if r.SpendsRetry {
			spends = OneRetry
		}
		return Consequence{Spends: spends, Next: r.When}
	}
	return Consequence{}
}

// ConditionRule is a condition whose consequence differs from that of its kind.
type ConditionRule struct {
	Condition Condition
	// Means describes the condition for people.
	Means string
	Consequence
}

// ConditionRules is the table of such conditions (docs/requirements.md R19 and R32).
func ConditionRules() []ConditionRule {
	return []ConditionRule{
		{
			Condition: Gone, Means: "the document does not exist",
			Consequence: Consequence{Spends: Nothing, Next: "nothing: a document that is gone is done"},
		},
		{
			Condition: Changed, Means: "the document has changed since it was read",
			Consequence: Consequence{Spends: Nothing, Next: "it is read again at once and processed as it is now"},
		},
		{Condition: TooLarge, Means: "the request is too large for the document", Consequence: Consequence{
			Spends: Nothing,
			Next:   "at once, with the shortest sql_writer; if that does not fit either: MANUAL REVIEW in the log, and done",
		}},
		{Condition: Unreadable, Means: "the document's structure cannot be understood", Consequence: Consequence{
			Spends: "all retries, whatever retry_count says",
			Next:   "as document; when others were written at least 60 s after its first failure, the second one makes it a poison message",
		}},
		{
			Condition: OthersAnswered,
			Means:     "the request failed like an outage, but a heartbeat was committed right after it",
			Consequence: Consequence{
				Spends: Nothing + "; the 3rd time that it happens to a document alone: " + OneRetry,
				Next:   "it is divided; a document that fails so alone is tried again after 120 s * 2^n; the 3rd time as internal, code fails_alone",
			},
		},
		{
			Condition: Waits, Means: "nothing was done: another writer has its turn, or the flow is held",
			Consequence: Consequence{
				Spends: Nothing, Next: "the batch comes again as it is; the breaker counts no failure",
			},
		},
		{
			Condition: OwnWhenAlone,
			Means:     "contention that no other document can have caused if the document fails alone",
			Consequence: Consequence{
				Spends: Nothing + "; when it happens to the document alone: " + OneRetry,
				Next:   "at once, 3 tries in all, with jitter; then divided; alone: as document",
			},
		},
	}
}
