-- Guarantees: every line of the request is staged once, in the order of the lines (locks are then taken in it), with
-- what is there for it already: its detail row (we never make one), its ledger row, its tracking row. These three are
-- read before anything is locked and only choose statements; what changed since is found by the guards and the counts.
-- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, its values] ...],
-- "lines": [[detail id, item's number, position, row hash, the values that differ from line to line] ...]}.
INSERT INTO #line (
    detail_id, doc, position, document_id, document_key, version_us, source_ts, content_hash, hash_version, row_hash,
    mark, missing, known, tracked, winner, verdict{{range .ItemColumns}},
    {{.Staged}}{{end}}{{range .LineColumns}},
    {{.Staged}}{{end}}
)
SELECT
    r.detail_id, i.doc, r.position, i.document_id, i.document_key, i.version_us, i.source_ts, i.content_hash,
    i.hash_version, r.row_hash, i.mark, CASE WHEN d.{{.DetailKey}} IS NULL THEN 1 ELSE 0 END,
    CASE WHEN l.detail_id IS NULL THEN 0 ELSE 1 END, CASE WHEN t.{{.TrackingKey}} IS NULL THEN 0 ELSE 1 END, 1, 'applied'{{range .ItemColumns}},
    i.{{.Staged}}{{end}}{{range .LineColumns}},
    r.{{.Staged}}{{end}}
FROM
    OPENJSON (@request, '$.lines') WITH (
        detail_id bigint '$[0]',
        doc int '$[1]',
        position int '$[2]',
        row_hash char(64) '$[3]'{{range .LineColumns}},
        {{.Staged}} {{.StagedType}} '$[{{.Position}}]'{{end}}
    ) AS r
INNER HASH JOIN
    OPENJSON (@request, '$.items') WITH (
        doc int '$[0]',
        document_id nvarchar(max) '$[1]',
        document_key char(64) '$[2]',
        version_us bigint '$[3]',
        source_ts bigint '$[4]',
        content_hash char(64) '$[5]',
        hash_version int '$[6]',
        mark int '$[7]'{{range .ItemColumns}},
        {{.Staged}} {{.StagedType}} '$[{{.Position}}]'{{end}}
    ) AS i
    ON i.doc = r.doc
LEFT LOOP JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = r.detail_id
LEFT LOOP JOIN {{.Ledger}} AS l ON l.detail_id = r.detail_id
LEFT LOOP JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = r.detail_id
ORDER BY r.detail_id, r.doc;
SELECT
    @rows = COUNT(*), @lines = COUNT(DISTINCT s.detail_id), @missing = SUM(s.missing), @known = SUM(s.known),
    @marks = SUM(s.mark), @tracked = SUM((1 - s.mark) * s.tracked)
FROM #line AS s;
SET @winners = @rows;
