package fault

import (
	"strconv"
	"strings"
)

// Row is one row of a classifier's table, for people: what one code means, where that is known from, and what the code
// costs the document it happens to. Adapters export their tables as Faults().
type Row struct {
	// Adapter is whose code it is: sqlserver, sqlite, cosmos, blob, or writer for the codes of our own rules.
	Adapter string
	// Code is the code as it stands in Error.Code: "2628", "refused", "validation.too_long". A row for several codes says
	// so: "429/*" is 429 with any substatus or none, "500-599" is a range.
	Code string
	// Name is another word for the code, which stands in the vendor's pages or logs: "SQLITE_BUSY"; usually empty.
	Name string
	// Kind and Condition are what the adapter makes of the code.
	Kind      Kind
	Condition Condition
	// About narrows the row to calls about something, "one document"; empty means any call.
	About string
	// Reason says for an operator what the code means here.
	Reason string
	// Source is where the row is known from: a vendor's page, or the rule of ours that it follows.
	Source string
	// Own is what follows from the code where that is not what its kind and condition say; zero elsewhere.
	Own Consequence
	// Rest is true for the row that stands for every code which no other row of the adapter names.
	Rest bool
	// Covers reports whether the row stands for a code that is not Code: another substatus, a status of the range. Nil
	// means that it stands for no other.
	Covers func(code string) bool
}

// Consequence is what a failure costs its document and what happens next, for people.
type Consequence struct {
	// Spends is what is spent: Nothing or OneRetry, or when which of them.
	Spends string
	// Next is what happens next, and when.
	Next string
}

// What is spent.
const (
	Nothing  = "nothing"
	OneRetry = "one of the document's 5 retries, when others were written after it"
)

// Of writes an adapter's name into its rows.
func Of(adapter string, rows []Row) []Row {
	for i := range rows {
		rows[i].Adapter = adapter
	}
	return rows
}

// IsNumber reports whether a code is a whole number, as the codes of databases are.
func IsNumber(code string) bool {
	_, err := strconv.Atoi(code)
	return err == nil
}

// AtStart is what follows from a failure to open something: the app has not begun to work.
func AtStart() Consequence {
	return Consequence{Nothing, "the app tries to open it again every few seconds; Health says what is wrong, and batches wait"}
}

// OfACommand is what follows from a failure of an operator's command.
func OfACommand() Consequence {
	return Consequence{Nothing, "the command ends and says so; mended, it is run again"}
}

// Names reports whether a code is the row's own, whatever its case. A status alone names its rows with a substatus too.
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
func (r Row) StandsFor(code string) bool {
	return r.Names(code) || (r.Covers != nil && r.Covers(code))
}

// Consequence is what follows from the code: what the row says itself, else its condition, else its kind.
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

// consequenceOf is what the table of kinds says of a kind.
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

// ConditionRule is one row of the table of conditions: those that have another consequence than their kind.
type ConditionRule struct {
	// Condition is the row's key.
	Condition Condition
	// Means says for people what the condition is.
	Means string
	Consequence
}

// ConditionRules is the table of conditions (docs/requirements.md R19 and R32).
func ConditionRules() []ConditionRule {
	return []ConditionRule{
		{Gone, "the document is not there", Consequence{Nothing, "nothing: a document that is gone is done"}},
		{Changed, "it is not what was read any more", Consequence{Nothing, "it is read again at once, and what it holds now decides"}},
		{TooLarge, "what was sent does not fit into the document", Consequence{
			Nothing, "at once, with the shortest sql_writer; if that does not fit either: MANUAL REVIEW in the log, and done",
		}},
		{Unreadable, "it cannot be understood as a document at all", Consequence{
			"all retries at once, when others were written after it",
			"as document; when others were written at least 60 s after its first failure, the second one makes it a poison message",
		}},
		{OthersAnswered, "the request failed like an outage, and a heartbeat was committed right after it", Consequence{
			Nothing + "; the 3rd time that it happens to a document alone: " + OneRetry,
			"it is divided; a document that fails so alone is tried again after 120 s * 2^n; the 3rd time as internal, code fails_alone",
		}},
		{OwnWhenAlone, "contention that nobody else can have caused when it happens to a document alone", Consequence{
			Nothing + "; when it happens to the document alone: " + OneRetry,
			"at once, up to 3 times with jitter; then divided; alone: as document",
		}},
	}
}
