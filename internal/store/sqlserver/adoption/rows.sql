-- Guarantees: the ledger's rows of the lines in @lines, a JSON array.
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome
FROM (
    SELECT DISTINCT r.detail_id
    FROM OPENJSON (@lines) WITH (detail_id bigint '$') AS r
) AS s
INNER JOIN sqlwriter.ledger AS l ON l.detail_id = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
