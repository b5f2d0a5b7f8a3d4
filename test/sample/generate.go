package sample

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"sqlwriter/test/expect"
)

// Options configure Generate.
type Options struct {
	// Seed is the seed of the random numbers. The same options give the same bytes.
	Seed uint64
	// Count is the number of documents.
	Count int
	// FirstLine is the smallest line id; zero means 2000001.
	FirstLine int64
	// Size is the approximate size of a document in bytes, if positive. A member without a column pads the document.
	Size int
	// Clean leaves out the documents that cannot commit.
	Clean bool
}

// DefaultSeed and DefaultCount are the options of `make run`.
const (
	DefaultSeed  = 20251217
	DefaultCount = 500
)

// every and firstException are the positions of the documents that must not commit.
const (
	every          = 167
	firstException = 100
)

type generator struct {
	Options
	r    *rand.Rand
	at   time.Time
	line int64
	// earlier are the valid documents whose main line may get a second result.
	earlier []earlierResult
}

type earlierResult struct {
	index int
	at    time.Time
	main  int64
}

// Generate makes documents with invented contents. A third of them have one to five duplicate lines. One in sixteen is
// a second, newer or older result for the line of an earlier document. Three of 500 are invalid; their Want explains
// why.
func Generate(o Options) []Document {
	if o.FirstLine == 0 {
		o.FirstLine = 2000001
	}
	g := &generator{
		Options: o, r: rand.New(rand.NewPCG(o.Seed, 0)),
		at:   time.Date(2025, 12, 18, 6, 0, 0, 0, time.FixedZone("", -6*3600)),
		line: o.FirstLine,
	}
	docs := make([]Document, 0, o.Count)
	for i := range o.Count {
		docs = append(docs, g.next(i, docs))
	}
	return docs
}

func (g *generator) next(i int, docs []Document) Document {
	g.at = g.at.Add(time.Duration(1+g.r.Int64N(4_000_000)) * time.Microsecond)
	d := Document{
		Name: fmt.Sprintf("generated %05d", i),
		Want: expect.Want{Status: "committed", Outcomes: []string{"applied"}, Why: "a valid result"},
	}
	at, main := g.at, g.takeLine()
	dups := []int64{}
	if g.r.IntN(3) == 0 {
		for range 1 + g.r.IntN(5) {
			dups = append(dups, g.takeLine())
		}
	}
	exception := !g.Clean && i%every == firstException
	second := g.r.IntN(16) == 0 && len(g.earlier) > 0 && !exception
	if second {
		at, main = g.second(&d, docs)
		dups = []int64{}
	}
	out := g.output(at)
	d.Lines = append([]int64{main}, dups...)
	switch {
	case exception:
		dups = g.spoil(&d, i/every, out, dups)
	case !second:
		g.earlier = append(g.earlier, earlierResult{index: i, at: at, main: main})
	}
	d.ID, d.JSON = g.document(i, at, main, dups, out)
	return d
}

func (g *generator) takeLine() int64 {
	l := g.line
	g.line++
	return l
}

// second makes a document another result for the line of an earlier one; nine in ten are newer. The order in which the
// two reach SQL is not defined, so the older one may end as applied or as superseded.
func (g *generator) second(d *Document, docs []Document) (time.Time, int64) {
	n := g.r.IntN(len(g.earlier))
	first := g.earlier[n]
	// A line has at most two results. With more, the allowed outcomes would depend on all of them.
	g.earlier = append(g.earlier[:n], g.earlier[n+1:]...)
	either := []string{"applied", "superseded"}
	if g.r.IntN(10) > 0 {
		docs[first.index].Want = olderWant(docs[first.index], d.Name, either)
		d.Want.Why = "the newest result for the line of " + docs[first.index].Name
		return g.at, first.main
	}
	d.Want = expect.Want{
		Status: "committed", Outcomes: either, Why: "an older result for the line of " + docs[first.index].Name,
	}
	return first.at.Add(-time.Duration(1+g.r.Int64N(90_000_000)) * time.Microsecond), first.main
}

// olderWant is the required state of a document with a newer result for its main line. With duplicates it is always
// applied.
func olderWant(d Document, newer string, either []string) expect.Want {
	if len(d.Lines) > 1 {
		either = []string{"applied"}
	}
	return expect.Want{Status: "committed", Outcomes: either, Why: "the newest result for its main line is " + newer}
}

// spoil makes a document invalid, in one of three ways in turn.
func (g *generator) spoil(d *Document, turn int, out map[string]any, dups []int64) []int64 {
	d.Want = expect.Want{Status: "retry_scheduled", Kind: "document"}
	switch turn % 3 {
	case 0:
		out["part_number"] = strings.Repeat("0123456789", 10) + "X"
		d.Want.Why = "part_number has 101 characters where 100 fit"
	case 1:
		missing := int64(9_000_000_000) + int64(turn)
		d.Want.Why = fmt.Sprintf("duplicate %d has no detail row", missing)
		return append(dups, missing)
	default:
		out["unspsc_confidence"] = json.Number("1.2")
		d.Want.Why = "unspsc_confidence 1.2 is more than 1"
	}
	return dups
}

// document assembles a document. Up to nine lines share the number of their request.
func (g *generator) document(
	i int, at time.Time, main int64, dups []int64, out map[string]any,
) (string, json.RawMessage) {
	request := fmt.Sprintf("%s-%04d", stamp(at), i/9+1)
	id := request + "-" + strconv.FormatInt(main, 10)
	post := map[string]any{"duplicate_detail_uids": dups}
	if len(dups) == 0 && g.r.IntN(4) == 0 {
		post = map[string]any{}
	}
	doc := map[string]any{
		"id":              id,
		"request_details": map[string]any{"id": request, "sys_name": "web", "total_invoice_detail_ids": 1 + len(dups)},
		"invoice_details_from_rpa": map[string]any{
			"IVCE_DTL_UID": main, "IVCE_NUM": fmt.Sprintf("INV-%05d", 10000+i/9),
			"ITM_LDSC": g.pick(goods()) + " " + strings.ToUpper(g.code()),
		},
		"process_output":  out,
		"post-processing": post,
		"sql_writer":      map[string]any{"status": "pending", "retry_count": 0},
	}
	raw := encode(doc)
	if missing := g.Size - len(raw); missing > 0 {
		doc["pipeline_trace"] = strings.Repeat("stage ok; ", missing/10)
		raw = encode(doc)
	}
	return id, raw
}

// encode gives the same bytes for the same value, because it sorts members by name.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("sample: encode: %v", err)) // only maps of strings and numbers come here
	}
	return bytes.TrimSpace(b.Bytes())
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05.000000-07:00") }
