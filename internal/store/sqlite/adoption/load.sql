-- Guarantees: each row of the page is staged once. ?1 is the page's JSON parameter. A row: line, version, key,
-- document, source_ts, hash, hash version, sys_name, outcome. Key and hash are places in ?2.
WITH j AS MATERIALIZED (SELECT e.value FROM json_each(?1) AS e)
INSERT INTO sqlwriter_adopt (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name, outcome
)
SELECT
    j.value ->> 0, j.value ->> 1, substr(?2, 32 * (j.value ->> 2) + 1, 32), j.value ->> 3, j.value ->> 4,
    substr(?2, 32 * (j.value ->> 5) + 1, 32), j.value ->> 6, j.value ->> 7, j.value ->> 8
FROM j;
