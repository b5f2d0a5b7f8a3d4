-- Guarantees: every line of the request is staged once, in the order of the lines (locks are then usually
-- taken in it).
-- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, its values] ...],
-- "lines": [[detail id, item's number, position, row hash, the values that differ from line to line] ...]}.
INSERT INTO #line (
    detail_id, doc, position, document_id, document_key, version_us, source_ts, content_hash, hash_version, row_hash,
    mark{{range .ItemColumns}},
    {{.Staged}}{{end}}{{range .LineColumns}},
    {{.Staged}}{{end}}
)
SELECT
    r.detail_id, i.doc, r.position, i.document_id, i.document_key, i.version_us, i.source_ts, i.content_hash,
    i.hash_version, r.row_hash, i.mark{{range .ItemColumns}},
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
ORDER BY r.detail_id, r.doc;
