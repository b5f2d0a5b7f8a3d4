package storybook

import (
	"net/url"
	"time"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
	"sqlwriter/internal/reconcile"
)

func findingStories() []Story {
	const document = "2026-11-20 02:40:01.553120-06:00-0004-1421549"
	row := func(class reconcile.Class, line int64) ops.FindingRow {
		return ops.FindingRow{Name: string(class) + "/1421549/" + document, Finding: reconcile.Finding{
			Seen: reconcile.Seen{
				Key:    reconcile.Key{Class: class, Line: line, Document: document},
				Detail: "differs in IVCE_DTL.CLN_MFR_AI_NM",
			},
			FirstSeen: Ago(30 * time.Hour), LastSeen: Ago(73 * time.Minute),
		}}
	}
	edited, stale := row(reconcile.Edited, 1421549), row(reconcile.Stale, 1421702)
	found := ops.Found{
		Classes: []reconcile.Count{
			{Class: reconcile.Edited, Findings: 2, First: Ago(30 * time.Hour)},
			{Class: reconcile.Stale, Findings: 1, First: Ago(73 * time.Minute)},
		}, Open: 1, Edited: 2, Comparison: "2026-11-22", ComparedAt: Ago(73 * time.Minute),
		Comparing: "compare-20261122-020419-0a1b2c3d", MovedAt: Ago(time.Minute),
		Says: "1 open (1 stale); people edited 2 lines",
	}
	hostile := ops.FindingRow{
		Name: Hostile,
		Finding: reconcile.Finding{
			Seen: reconcile.Seen{
				Key: reconcile.Key{Class: reconcile.Class(Hostile), Line: 1, Document: Hostile}, Detail: Hostile,
			},
		},
	}
	about := url.Values{"finding": {edited.Name}}
	text := func(s string) *string { return &s }
	values := ops.Diff{Documents: []ops.DocumentDiff{{ID: document, Lines: []ops.LineDiff{
		{
			Line: 1421549, Outcome: invoice.OutcomeUnchanged,
			Says: "this content was written before, and 1 column changed since: a write leaves the line alone",
			Columns: []ops.ColumnDiff{
				{Table: invoice.Detail, Column: "CLN_MFR_AI_NM", Before: text("SIEMENS AG"), After: text("SIEMENS")},
			},
		},
		{Line: 1421550, Outcome: invoice.OutcomeUnchanged, Says: "it has this content"},
	}}}}
	return []Story{
		{
			Name: "findings-open", Says: "What the night found.", Path: "findings",
			Answers: map[string]any{
				"finding.list": ops.FindingPage{Findings: []ops.FindingRow{edited, stale}, Found: found, Next: "x"},
			},
		},
		{
			Name: "findings-empty", Says: "Nothing.", Path: "findings",
			Answers: map[string]any{"finding.list": ops.FindingPage{Found: ops.Found{Says: "none are open"}}},
		},
		{
			Name: "findings-filtered", Says: "A filter without a match.", Path: "findings",
			Query:   url.Values{"classes": {"stale"}, "line": {"7"}},
			Answers: map[string]any{"finding.list": ops.FindingPage{Found: found}},
		},
		{
			Name: "findings-sql-away", Says: "SQL has them.", Path: "findings",
			Answers: map[string]any{"finding.list": SQLAway()},
		},
		{
			Name: "findings-hostile", Says: "Texts are texts.", Path: "findings",
			Answers: map[string]any{
				"finding.list": ops.FindingPage{
					Findings: []ops.FindingRow{hostile},
					Found: ops.Found{
						Says: Hostile, Comparing: Hostile,
						Classes: []reconcile.Count{{Class: reconcile.Class(Hostile), Findings: 1}},
					},
				},
			},
		},
		{
			Name: "finding-open", Says: "One of them.", Path: "findings", Query: about,
			Answers: map[string]any{
				"finding.list": ops.FindingPage{Findings: []ops.FindingRow{edited}}, "document.diff": values,
			},
		},
		{
			Name: "finding-stale", Says: "A reader sees no values.", Path: "findings", Query: about,
			Role:    opsapi.Reader,
			Answers: map[string]any{"finding.list": ops.FindingPage{Findings: []ops.FindingRow{stale}}},
		},
		{
			Name: "finding-hostile", Says: "Texts are texts.", Path: "findings", Query: about,
			Answers: map[string]any{"finding.list": ops.FindingPage{Findings: []ops.FindingRow{hostile}}},
		},
	}
}
