-- Guarantees: a row for each line that a rewrite would write, with the ledger's hashes, the fingerprints of its two
-- rows and their values, in the order of the column table. The fingerprint of an absent tracking row is NULL.
-- keep_status is 1 where a write would say unchanged. The content's hash is NULL of an older document.
-- The ledger's rows stay locked until the statement ends, so that no write comes between a ledger row and its line. The
-- user's rows are the present ones, also in a database with READ_COMMITTED_SNAPSHOT.
SELECT
    s.doc AS sqlwriter_present, s.position,
    CASE
        WHEN
            l.detail_id IS NULL
            OR {{template "newer" .}}
            OR (
                {{template "other" .}}
            )
            THEN 0
        ELSE 1
    END AS keep_status,
    CASE
        WHEN
            {{template "newer" .}}
            THEN CAST(NULL AS binary(32))
        ELSE l.content_hash
    END AS content_hash,
    CASE WHEN l.detail_id IS NULL THEN 0 ELSE 1 END AS known, l.hash_version, l.detail_row_hash, l.tracking_row_hash,
    {{fingerprint "d" .Detail 4}} AS detail_seen,
    CASE
        WHEN t.{{.TrackingKey}} IS NOT NULL
            THEN {{fingerprint "t" .Tracking 12}}
    END AS tracking_seen{{range .Columns}},
    {{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS {{.Label}}{{end}}
FROM #line AS s
LEFT JOIN {{.Ledger}} AS l WITH (REPEATABLEREAD) ON l.detail_id = s.detail_id
INNER JOIN {{.DetailTable}} AS d WITH (READCOMMITTEDLOCK) ON d.{{.DetailKey}} = s.detail_id
LEFT JOIN {{.TrackingTable}} AS t WITH (READCOMMITTEDLOCK) ON t.{{.TrackingKey}} = s.detail_id
WHERE
    s.mark = 0
    AND (
        l.detail_id IS NULL
        OR {{template "newer" .}}
        OR ({{template "same" .}})
        OR {{template "released" .}}
    )
OPTION (LOOP JOIN, FORCE ORDER);
