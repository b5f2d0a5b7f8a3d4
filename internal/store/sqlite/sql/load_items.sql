-- Guarantees: one staged item per document of the request, as text, in the order of the request. ?1 is the request's
-- one JSON parameter; an item is an array: number, id, key, version, source_ts, hash, hash version, mark, then the values
-- that all its lines share (NULL for a mark).
INSERT INTO {{.Item}} (
    doc, document_id, document_key, version_us, source_ts, content_hash, hash_version, mark{{range .ItemColumns}},
    {{.Staged}}{{end}}
)
SELECT
    j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7{{range .ItemColumns}},
    j.value ->> {{.Position}}{{end}}
FROM jsonb_each(?1, '$.items') AS j;
