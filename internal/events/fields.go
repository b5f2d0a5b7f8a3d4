package events

import (
	"cmp"
	"maps"
	"reflect"
	"time"

	"github.com/rs/zerolog"

	"sqlwriter/internal/condition"
	"sqlwriter/internal/fault"
)

// Fields are the members that a line may have. A zero value is left out, so a count that is absent is 0. The tag log is
// the member's name, and says its meaning in docs/events.md. No field ever has a value of a document, a payload or a
// secret.
type Fields struct {
	Function   string  `log:"function" says:"function of the invocation"`
	Invocation string  `log:"invocation" says:"the host's id of the invocation"`
	Run        string  `log:"run" says:"id of the run"`
	Batch      string  `log:"batch" says:"id of the run's batch (table batch)"`
	Document   string  `log:"document" says:"id of the document"`
	Line       int64   `log:"line" says:"id of the document's main line in IVCE_DTL"`
	Duplicates []int64 `log:"duplicates" says:"ids of its other lines"`

	Kind   fault.Kind `log:"kind" says:"kind of the failure ([errors.md](errors.md))"`
	Code   string     `log:"code" says:"code of the failure; sqlwriterctl explain CODE says what it means"`
	Reason string     `log:"reason" says:"why, in words without any value of a document"`
	Stack  string     `log:"stack" says:"where a panic happened"`

	HTTPStatus int    `log:"http_status" says:"HTTP status: to the caller (Ops, Ui), else to the host unless it is 200"`
	MS         int64  `log:"ms" says:"duration of the invocation in milliseconds"`
	Method     string `log:"method" says:"GET, POST or other"`
	Call       string `log:"call" says:"name of the operators' call"`

	Documents    int            `log:"documents" says:"number of documents"`
	Outcomes     map[string]int `log:"outcomes" says:"documents by outcome ([runbook.md](runbook.md#one-line-per-invocation))"`
	Kinds        map[string]int `log:"kinds" says:"failed documents by kind"`
	RetryCount   int            `log:"retry_count" says:"how often the host offered this batch before; of a document: the retries that it has spent"`
	LagMS        int64          `log:"lag_ms" says:"age of the batch's oldest change, or of the document's, in milliseconds"`
	SQLRequests  int            `log:"sql_requests" says:"requests to SQL"`
	SQLMS        int64          `log:"sql_ms" says:"milliseconds in SQL"`
	CosmosReads  int            `log:"cosmos_reads" says:"reads of Cosmos DB"`
	CosmosWrites int            `log:"cosmos_writes" says:"patches of Cosmos DB"`
	CosmosMS     int64          `log:"cosmos_ms" says:"milliseconds in Cosmos DB"`
	Mode         string         `log:"mode" says:"setting MODE"`
	Columns      map[string]int `log:"columns" says:"shadow: differing documents by column"`
	DiffersIn    []string       `log:"differs_in" says:"shadow: columns in which this document differs"`

	Found    map[string]int `log:"found" says:"documents that the timer took up, by window"`
	More     []string       `log:"more" says:"windows of which the tick did not take everything"`
	Missed   int            `log:"missed" says:"documents that the feed should have brought"`
	OldestS  int64          `log:"oldest_s" says:"age of the oldest document found, in seconds"`
	Runs     map[string]int `log:"runs" says:"what the tick did for runs, by action"`
	RunsOff  string         `log:"runs_off" says:"why the tick did nothing for runs"`
	Purged   int            `log:"purged" says:"old rows that the tick deleted"`
	Compared int            `log:"compared" says:"steps of comparisons that the tick did"`
	Off      string         `log:"off" says:"why the tick did not run"`
	Flow     string         `log:"flow" says:"the flow in words, where it ended the tick"`

	Comparison    string         `log:"comparison" says:"id of a comparison: a night's is its date"`
	Did           string         `log:"did" says:"what became of a message"`
	Counts        map[string]int `log:"counts" says:"numbers of a message's work, or of what was compared, by class"`
	DeliveryCount int            `log:"delivery_count" says:"how often Service Bus delivered the message"`
	Evidence      string         `log:"evidence" says:"folder of the evidence in blob storage, below SYS_NAME"`
	Marked        bool           `log:"marked" says:"the lines have AI-ERROR"`
	Changed       bool           `log:"changed" says:"the batch or run was changed"`
	Index         int            `log:"index" says:"place in the batch, from 1"`

	Status     string `log:"status" says:"status of the document or run"`
	Outcome    string `log:"outcome" says:"outcome of the document"`
	RetryAfter int64  `log:"retry_after" says:"time of the next try, in epoch seconds"`

	State     string    `log:"state" says:"state of the breaker: closed, half_open, open, paused"`
	HeldBy    string    `log:"held_by" says:"who paused the flow"`
	Limit     int       `log:"limit" says:"most documents in one request"`
	NextProbe time.Time `log:"next_probe" says:"when SQL is probed next"`
	Since     time.Time `log:"since" says:"since when; of a poison message the time of the latest"`

	Batches  int   `log:"batches" says:"number of batches"`
	Sent     int   `log:"sent" says:"messages that the queue took"`
	Unsent   int   `log:"unsent" says:"messages that it did not take"`
	InsertMS int64 `log:"insert_ms" says:"milliseconds of storing batches"`
	SendMS   int64 `log:"send_ms" says:"milliseconds of sending messages"`
	UpdateMS int64 `log:"update_ms" says:"milliseconds of recording what was sent"`

	Condition string             `log:"condition" says:"what asks for a person ([the conditions](#the-conditions))"`
	Severity  condition.Severity `log:"severity" says:"wake or tell: who is told of the condition"`

	Version    string   `log:"version" says:"the build"`
	SysName    string   `log:"sys_name" says:"setting SYS_NAME"`
	Dependency string   `log:"dependency" says:"cosmos, sql, servicebus, blob or leases"`
	AgainMS    int64    `log:"again_ms" says:"milliseconds until the next try"`
	Problems   []string `log:"problems" says:"what is wrong with the settings"`
	Drained    bool     `log:"drained" says:"invocations under way could finish"`
}

// Of gives the fields with kind, code and reason of an error. The text of an unclassified error may be anything, so its
// reason is empty.
func (f Fields) Of(err error) Fields {
	f.Kind, f.Code = fault.KindOf(err), fault.CodeOf(err)
	if e := fault.As(err); e != nil {
		f.Reason = e.Reason
	}
	return f
}

// completed gives the fields with the ids that they lack.
func (f Fields) completed(ids Fields) Fields {
	f.Function, f.Invocation = cmp.Or(f.Function, ids.Function), cmp.Or(f.Invocation, ids.Invocation)
	f.Run, f.Batch = cmp.Or(f.Run, ids.Run), cmp.Or(f.Batch, ids.Batch)
	return f
}

// writeTo adds the members that are not zero to a line, in the order of Fields.
func (f Fields) writeTo(line *zerolog.Event) {
	v := reflect.ValueOf(f)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() {
			writeField(line, fieldTypes.Field(i).Tag.Get("log"), field.Interface())
		}
	}
}

func writeField(line *zerolog.Event, name string, value any) {
	switch value := value.(type) {
	case string:
		line.Str(name, value)
	case fault.Kind:
		line.Str(name, string(value))
	case map[string]int:
		value = maps.Clone(value)
		maps.DeleteFunc(value, func(_ string, n int) bool { return n == 0 })
		if len(value) > 0 {
			line.Interface(name, value) // in the order of its names
		}
	case time.Time:
		line.Time(name, value.UTC())
	default:
		line.Interface(name, value)
	}
}

var fieldTypes = reflect.TypeFor[Fields]() //nolint:gochecknoglobals // a table of constants
