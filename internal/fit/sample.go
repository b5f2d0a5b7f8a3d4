package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sqlwriter/internal/commit"
	"sqlwriter/internal/invoice"
)

// Bounds of the sample. A query over all partitions has no order, so the newest are found by windows of time.
const (
	mostCommitted = 200
	mostWaiting   = 50
	mostCharge    = 2000 // request units
	pageSize      = 25
	atOnce        = 100 // ids, or rows
	shownIDs      = 5
)

// container is where findings about documents are.
const container = "container"

// check is one Check.
type check struct {
	Options
	*Report

	documents commit.Finder
	db        Database
	all       []*sampled
	// lines have the newest committed document of each line.
	lines map[int64]*sampled
	// dearest is what the dearest page has cost: none is asked for that may exceed mostCharge.
	dearest float64
}

// sampled is a document of the sample, with its members by dotted path.
type sampled struct {
	invoice.Document
	members map[string]json.RawMessage
}

func (c *check) find(level Level, where, format string, args ...any) {
	c.Findings = append(c.Findings, Finding{level, where, fmt.Sprintf(format, args...)})
}

// sample reads the newest documents.
func (c *check) sample(ctx context.Context) error {
	committed, err := c.newest(ctx, mostCommitted, invoice.Committed)
	if err != nil {
		return err
	}
	waiting, err := c.newest(ctx, mostWaiting, invoice.Pending, invoice.RetryScheduled)
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, raw := range slices.Concat(committed, waiting) {
		d, err := c.Reader.Read(raw, c.Now)
		if err != nil {
			c.Unreadable++
			continue
		}
		s := &sampled{d, map[string]json.RawMessage{}}
		flatten(s.members, "", raw)
		c.all, ids[d.ID] = append(c.all, s), true
		if d.State.Status != invoice.Committed {
			c.Waiting++
			continue
		}
		c.Committed++
		for _, line := range append([]int64{d.Main}, d.Duplicates...) {
			if other := c.lines[line]; line > 0 && (other == nil || other.Version.Compare(d.Version) < 0) {
				c.lines[line] = s
			}
		}
	}
	c.Lines = len(c.lines)
	switch {
	case len(c.all) == 0:
		c.find(Look, container, "no document of the environment %q (SYS_NAME) was found: only columns are checked", c.SysName)
	case c.Committed == 0:
		c.find(Look, container, "no document is committed: no row can be compared")
	}
	if c.Unreadable > 0 {
		c.find(Look, container, "%d documents cannot be read (docs/rules.md)", c.Unreadable)
	}
	c.failing()
	return c.twins(ctx, slices.Sorted(maps.Keys(ids)))
}

// newest gives about the newest documents with one of the statuses, at most n.
func (c *check) newest(ctx context.Context, n int, statuses ...invoice.Status) (all []json.RawMessage, err error) {
	const day = 24 * time.Hour
	seen := map[string]bool{}
	to := c.Now.Add(time.Hour).Unix() // clocks differ
	for _, back := range []time.Duration{15 * time.Minute, 3 * time.Hour, day, 7 * day, 60 * day, 100 * 365 * day} {
		from := max(0, c.Now.Add(-back).Unix())
		q := commit.Query{SysName: c.SysName, From: from, To: to, Statuses: statuses, Size: pageSize}
		to = from
		err := c.each(ctx, q, func(raw json.RawMessage) bool {
			if rid := textOf(raw, "_rid"); len(all) < n && !seen[rid] {
				seen[rid] = rid != ""
				all = append(all, raw)
			}
			return len(all) < n
		})
		if err != nil || len(all) >= n {
			return all, err
		}
	}
	return all, nil
}

// each visits the documents of a query until visit or the bound on request units ends it.
func (c *check) each(ctx context.Context, q commit.Query, visit func(json.RawMessage) (more bool)) error {
	if c.Charge+c.dearest > mostCharge {
		return nil
	}
	return commit.Each(ctx, c.documents, q, func(page commit.Page) (more bool, err error) {
		c.Charge += page.Charge
		c.dearest = max(c.dearest, page.Charge)
		more = c.Charge+c.dearest <= mostCharge
		if !more {
			c.find(Note, container, "reading ended at %.0f request units: the sample may be smaller, and not all ids are looked up",
				c.Charge)
		}
		for _, raw := range page.Documents {
			more = visit(json.RawMessage(raw)) && more
		}
		return more, nil
	})
}

// flatten adds the members of an object that are no objects, by dotted path. Members without a value are left out, and
// so are names that a path cannot have.
func flatten(into map[string]json.RawMessage, prefix string, object json.RawMessage) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members) // it was read as JSON
	for name, value := range members {
		switch {
		case name == "" || strings.ContainsAny(name, ".[]") || string(value) == "null":
		case value[0] == '{':
			flatten(into, prefix+name+".", value)
		default:
			into[prefix+name] = value
		}
	}
}

func textOf(object json.RawMessage, name string) (text string) {
	_ = json.Unmarshal(invoice.Member(object, []string{name}), &text) // what is no text is none
	return text
}

// twins reports ids that several documents have, under different partition keys.
func (c *check) twins(ctx context.Context, ids []string) error {
	documents := map[string]map[string]bool{} // by id and _rid
	var twice []string
	for chunk := range slices.Chunk(ids, atOnce) {
		q := commit.Query{IDs: chunk, Members: []string{"id", "_rid"}, Size: commit.MaxPage}
		if err := c.each(ctx, q, func(raw json.RawMessage) bool {
			id := textOf(raw, "id")
			if documents[id] == nil {
				documents[id] = map[string]bool{}
			}
			if documents[id][textOf(raw, "_rid")] = true; len(documents[id]) == 2 {
				twice = append(twice, strconv.Quote(id))
			}
			return true
		}); err != nil {
			return err
		}
	}
	if n := len(twice); n > 0 {
		c.find(Wrong, container, "several documents have one id, under different partition keys: %s. Delete all but one of each (id_twice)",
			strings.Join(twice[:min(n, shownIDs)], ", ")+strings.Repeat(", ...", min(1, n/(shownIDs+1))))
	}
	return nil
}

// unread notes members that nothing reads.
func (c *check) unread() {
	known := append([]string{
		"id", "request_details.sys_name", "invoice_details_from_rpa.IVCE_DTL_UID",
		"post-processing.duplicate_detail_uids",
	}, c.Keys...)
	for _, column := range c.Reader.Mapping.Columns() {
		known = append(known, column.Paths...)
	}
	times := map[string]int{}
	for _, d := range c.all {
		for path := range d.members {
			if mappable(path) && !slices.Contains(known, path) {
				times[path]++
			}
		}
	}
	rare := 0
	for _, path := range slices.Sorted(maps.Keys(times)) {
		if 20*times[path] < len(c.all) { // it may be a value: a member for each vendor
			rare++
			continue
		}
		c.find(Note, path, "nothing reads it; %d of %d documents have it", times[path], len(c.all))
	}
	if rare > 0 {
		c.find(Note, container, "nothing reads %d members that fewer than one document of 20 has", rare)
	}
}

// mappable reports a member that a mapping may read.
func mappable(path string) bool {
	return !strings.HasPrefix(path, "sql_writer.") && !strings.HasPrefix(path, "_") &&
		path != "post-processing.duplicate_detail_uids"
}

// failing reports documents that would fail for another reason than the value of a column.
func (c *check) failing() {
	codes := map[string]int{}
	for _, d := range c.all {
		var problem *invoice.Invalid
		if !errors.As(d.Problem, &problem) {
			continue
		}
		for _, f := range problem.Fields {
			of := func(column invoice.Column) bool { return concerns(f, column) }
			if !slices.ContainsFunc(c.Reader.Mapping.Columns(), of) {
				codes["validation."+f.Code+" of "+f.Path]++
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		c.find(Look, container, "%d of %d documents would fail: %s", codes[code], len(c.all), code)
	}
}
