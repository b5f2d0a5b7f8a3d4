package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"sqlwriter/test/expect"
	"sqlwriter/test/sample"
)

// shownDifferences bounds how many differences are printed.
const shownDifferences = 20

// show submits one document and prints its line before and after.
func (d *drain) show(ctx context.Context, doc sample.Document) error {
	line := doc.Lines[0]
	before, err := d.db.read(ctx)
	if err != nil {
		return err
	}
	if err := d.put(ctx, doc, make(chan struct{}, 1)); err != nil {
		return err
	}
	after, err := d.db.read(ctx)
	if err != nil {
		return err
	}
	now, _, _ := d.watch.get(doc.ID)
	d.out.linef("\none invoice line, %d, before and after %s (document %q)", line, doc.Name, doc.ID)
	rows := [][]string{{"column", "old", "new"}}
	for _, table := range []string{expect.Detail, expect.Tracking} {
		for _, column := range slices.Sorted(maps.Keys(after[table][line])) {
			was, is := before[table][line][column], after[table][line][column]
			if text(was) != text(is) {
				rows = append(rows, []string{table + "." + column, text(was), text(is)})
			}
		}
	}
	d.out.table(rows)
	d.out.linef("  document: pending -> %s (%s), %.2f s after it was submitted\n", now.status, now.outcome,
		d.took[doc.Name].Seconds())
	return nil
}

func text(s *string) string {
	if s == nil {
		return "NULL"
	}
	return strconv.Quote(*s)
}

// verify reads every document and every row back, prints a report, and returns whether all are exact. The second
// mapping knows the default columns alone: with a file of its own nobody computes the rows a second time, and nothing
// is exact.
func (d *drain) verify(ctx context.Context, writes, reads int) (exact bool, err error) {
	stored, err := d.stored(ctx)
	if err != nil {
		return false, err
	}
	if d.mapping != "" {
		d.outcomes(stored)
		d.exceptions(stored)
		d.speed(writes, reads)
		d.out.linef("\nrows: not computed a second time, because MAPPING names a file: no EXACT. What the reader reads by it is compared by " +
			"`bin/sqlwriterctl finding compare --all --why TEXT`")
		return false, nil
	}
	in := sample.Input(d.docs, stored)
	in.Before = d.before
	now, err := d.db.read(ctx)
	if err != nil {
		return false, err
	}
	result := expect.Compare(now, in)
	d.outcomes(stored)
	d.exceptions(stored)
	d.speed(writes, reads)
	d.out.linef(
		"\nrows: %d rows read back (%d values) of %d lines written, %d documents compared by a second mapping: %d differences",
		result.Rows, result.Values, result.Written, result.Documents, len(result.Differences))
	for i, diff := range result.Differences {
		if i == shownDifferences {
			d.out.linef("  ... and %d more", len(result.Differences)-i)
			break
		}
		d.out.linef("  DIFFERENT %s", diff)
	}
	if result.Exact() {
		d.out.linef("EXACT: each row equals the content of the document that the ledger names for it")
	}
	return result.Exact(), nil
}

// outcomes prints the number of documents by status and outcome.
func (d *drain) outcomes(stored map[string]json.RawMessage) {
	counts := map[[2]string]int{}
	for _, raw := range stored {
		var s state
		if json.Unmarshal(raw, &s) == nil {
			counts[[2]string{cmp.Or(s.Writer.Status, "-"), cmp.Or(s.Writer.Outcome, "-")}]++
		}
	}
	rows := [][]string{{"status", "outcome", "documents"}}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	for _, k := range keys {
		rows = append(rows, []string{k[0], k[1], strconv.Itoa(counts[k])})
	}
	d.out.linef("\ndocuments by status and outcome")
	d.out.table(rows)
}

// exceptions prints the documents that did not commit, with the reason.
func (d *drain) exceptions(stored map[string]json.RawMessage) {
	d.out.linef("\ndocuments that did not commit")
	for _, doc := range d.docs {
		if stored[doc.ID] == nil {
			continue
		}
		var s state
		if err := json.Unmarshal(stored[doc.ID], &s); err != nil {
			continue // verify reports it
		}
		if s.Writer.Status == "committed" && !doc.Want.LeftAlone() {
			continue
		}
		if doc.Want.LeftAlone() {
			d.out.linef("  %s  id %q\n    %s: %s", doc.Name, doc.ID, s.Writer.Status, doc.Want.Why)
			continue
		}
		d.out.linef("  %s  id %q\n    %s, kind %s: %s", doc.Name, doc.ID, s.Writer.Status,
			s.Writer.Kind, s.Writer.LastError)
	}
}

// speed prints the throughput and latency of the samples, and their cost at Cosmos DB.
func (d *drain) speed(writes, reads int) {
	var times []time.Duration
	var first time.Time
	committed, processed := 0, 0
	for _, doc := range d.docs {
		took, done := d.took[doc.Name]
		if !done || doc.Name == d.docs[0].Name {
			continue
		}
		processed++
		if first.IsZero() || d.sent[doc.Name].Before(first) {
			first = d.sent[doc.Name]
		}
		if doc.Want.Status == "committed" {
			committed++
			times = append(times, took)
		}
	}
	slices.Sort(times)
	seconds := d.last.Sub(first).Seconds()
	d.out.linef(
		"\nspeed: %d documents in %.2f s, %.0f documents/s; from change to committed p50 %.2f s, p99 %.2f s, max %.2f s (%d documents)",
		processed, seconds, float64(processed)/seconds, percentile(times, 50).Seconds(),
		percentile(times, 99).Seconds(), percentile(times, 100).Seconds(), committed)
	d.out.linef(
		"  measured from just before a document is submitted until the change feed, read every %v, shows it committed",
		feedPoll)
	d.out.linef(
		"cost at Cosmos DB: %d writes and %d reads by the handler, %.2f and %.2f per document (a read: text that looks like an ISO time; a second write: a version, or a retry after a race)",
		writes, reads, float64(writes)/float64(processed), float64(reads)/float64(processed))
}

// percentile returns the nearest-rank percentile of sorted durations; p is in percent.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

// stats reads the counters of the Cosmos DB emulator, or resets them with DELETE.
func (d *drain) stats(ctx context.Context, method string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, d.statsURL(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end below
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: expected 200, found %s", method, req.URL, resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

func (s *stack) statsURL() string { return "http://" + s.addresses.cosmos + "/_emulator/stats" }

// hints prints commands for a running stack.
func (s *stack) hints() {
	s.out.linef(`
the stack is running; Ctrl-C ends it. In another terminal:
  %s/api/ui/    the operators' pages, in a browser on this machine
  curl %s/api/health
  make ctl                                  (builds bin/sqlwriterctl)
  bin/sqlwriterctl status                   (asks this stack; from another folder with --app %s and SQLWRITER_KEY=%s)
  bin/sqlwriterctl document why %q
  bin/sqlwriterctl document submit --replace examples/02-duplicates.json
  logs: %s`, s.file.Functions, s.file.Functions, s.file.Functions, functionKey, "2025-12-17 10:45:00.250000-06:00-0002-1421549", s.logs())
}
