{{/* Sources that several statements share. CROSS JOIN fixes the order: the small staged table comes first. */ -}}
{{define "winners"}}(
    SELECT r.detail_id, r.detail_row_hash, r.tracking_row_hash, i.*, w.write_id, w.sent_at, w.sys_name
    FROM {{.Row}} AS r CROSS JOIN {{.Item}} AS i CROSS JOIN {{.Send}} AS w
    WHERE r.winner = 1 AND i.doc = r.doc
){{end -}}
{{define "applied"}}(
    SELECT r.detail_id, r.keep_status{{range .LineColumns}}, r.{{.Staged}}{{end}}, i.*
    FROM {{.Row}} AS r CROSS JOIN {{.Item}} AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
){{end -}}
{{/* The guard's parts: the staged line s is of a newer document than the ledger's row l, of no older snapshot of the
same document, of other content than the ledger has as written. */ -}}
{{define "newer"}}(l.version_us, l.document_key) < (s.version_us, s.document_key){{end -}}
{{define "same"}}l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts{{end -}}
{{/* A line of another recipe is left alone that is as new as the commit of a document that a run takes over. A mark
leaves every one alone: nobody can tell that the content is another. */ -}}
{{define "other"}}(
                l.content_hash IS NULL
                OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                OR (
                    s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                    AND max(l.source_ts, CAST(strftime('%s', l.applied_at) AS INTEGER)) < s.leave_since
                )
            ){{end -}}
{{/* Of a rewrite: the ledger's row l is the one that a release of the staged line s names. @releases is a list of detail
id, item's number, key, write id, source_ts; the key is a place in @hashes. */ -}}
{{define "released"}}EXISTS (
            SELECT 1
            FROM json_each(@releases) AS p
            WHERE
                p.value ->> 0 = s.detail_id AND p.value ->> 1 = s.doc
                AND substr(@hashes, 32 * (p.value ->> 2) + 1, 32) = l.document_key
                AND p.value ->> 3 = l.write_id AND p.value ->> 4 = l.source_ts
        ){{end -}}
{{/* A ledger row l, whether it was written more than @days ago (0 days: nothing was), which of the user's rows d and t of
its line exist, and their values as text, in the order of the column table. */ -}}
{{define "compared"}}l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome, l.write_id, l.detail_row_hash, l.tracking_row_hash,
    @days > 0 AND coalesce(l.applied_at < {{template "before"}}, FALSE),
    d.{{.DetailKey}} IS NOT NULL, t.{{.TrackingKey}} IS NOT NULL{{range .Columns}},
    CAST({{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS TEXT){{end}}{{end -}}
{{/* The time @days ago. */ -}}
{{define "before"}}strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || @days || ' days'){{end -}}
