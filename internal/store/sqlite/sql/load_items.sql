-- Guarantees: each document of the request is staged once, as text and in its order. ?1 is the request's JSON
-- parameter. An item: number, id, key, version, source_ts, hash, hash version, mark, leave since, then the values that
-- all lines share (NULL for a mark). Key and hash are places in ?2.
INSERT INTO {{.Item}} (
    doc, document_id, document_key, version_us, source_ts, content_hash, hash_version, mark,
    leave_since{{range .ItemColumns}},
    {{.Staged}}{{end}}
)
SELECT
    j.value ->> 0, j.value ->> 1, substr(?2, 32 * (j.value ->> 2) + 1, 32), j.value ->> 3, j.value ->> 4,
    substr(?2, 32 * (j.value ->> 5) + 1, 32), j.value ->> 6, j.value ->> 7, j.value ->> 8{{range .ItemColumns}},
    j.value ->> {{.Position}}{{end}}
FROM jsonb_each(?1, '$.items') AS j;
