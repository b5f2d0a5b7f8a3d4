-- Guarantees: one staged row per row of the page. ?1 is the page's one JSON parameter; a row is an array: line, version,
-- key, document, source_ts, hash, hash version, row hash, outcome.
WITH j AS MATERIALIZED (SELECT e.value FROM json_each(?1) AS e)
INSERT INTO sqlwriter_adopt (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, row_hash, outcome
)
SELECT
    j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6,
    j.value ->> 7, j.value ->> 8
FROM j;
