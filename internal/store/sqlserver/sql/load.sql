-- Guarantees: every line of the request is staged once with the values of its document. The order is that of
-- the lines, which is then the usual order of locks.
-- Texts and numbers are wider here than in the user's columns, so that the user's column refuses a value that
-- is too wide. A narrower type would cut it silently.
-- @request is {"items": [[number, id, key, version, source_ts, hash, hash version, mark, leave since, its values] ...],
-- "lines": [[detail id, item's number, position, the two row hashes, the values that differ from line to line] ...]}.
-- Key and hashes are places in @hashes, which has 32 bytes for each.
-- In a rewrite a line has four more members: the verdict if it is left alone, whether it keeps its status, and the
-- fingerprints of its two rows (rewrite_read.sql).
SELECT
    r.detail_id, r.doc, r.position,
    {{template "hash" "r.detail_row_hash"}} AS detail_row_hash,
    {{template "hash" "r.tracking_row_hash"}} AS tracking_row_hash, 0 AS missing,
    {{if .Rewrite}}CASE WHEN r.verdict IS NULL THEN 1 ELSE 0 END AS winner, COALESCE(r.verdict, 'applied') AS verdict,{{else}}1 AS winner, CAST('applied' AS varchar(14)) AS verdict,{{end}}{{if .Rewrite}}
    r.keep_status, r.detail_seen, r.tracking_seen,{{end}}
    CAST(NULL AS nvarchar(1023)) AS holder, CAST(NULL AS bigint) AS holder_us, CAST(NULL AS binary(32)) AS holder_key,
    i.document_id, {{template "hash" "i.document_key"}} AS document_key, i.version_us,
    i.source_ts, {{template "hash" "i.content_hash"}} AS content_hash, i.hash_version,
    i.mark, i.leave_since{{range .ItemSlots}},
    i.{{.Staged}}{{end}}{{range .LineSlots}},
    r.{{.Staged}}{{end}}
INTO #line
FROM
    OPENJSON (@request, '$.lines') WITH (
        detail_id bigint '$[0]',
        doc int '$[1]',
        position int '$[2]',
        detail_row_hash int '$[3]',
        tracking_row_hash int '$[4]'{{range .LineSlots}},
        {{.Staged}} {{.StagedType}} '$[{{.Position}}]'{{end}}{{range .RewriteSlots}},
        {{.Staged}} {{.StagedType}} '$[{{.Position}}]'{{end}}
    ) AS r
INNER HASH JOIN
    OPENJSON (@request, '$.items') WITH (
        doc int '$[0]',
        document_id nvarchar(1024) '$[1]',
        document_key int '$[2]',
        version_us bigint '$[3]',
        source_ts bigint '$[4]',
        content_hash int '$[5]',
        hash_version int '$[6]',
        mark int '$[7]',
        leave_since bigint '$[8]'{{range .ItemSlots}},
        {{.Staged}} {{.StagedType}} '$[{{.Position}}]'{{end}}
    ) AS i
    ON i.doc = r.doc
ORDER BY r.detail_id, r.doc;
SET @rows = @@ROWCOUNT;
SET @winners = @rows;
IF @rows <> @expected
    BEGIN
        SET @note = CONCAT(N'sqlwriter: expected ', @expected, N' lines, found ', @rows);
        THROW {{.RowCount}}, @note, 1;
    END;
