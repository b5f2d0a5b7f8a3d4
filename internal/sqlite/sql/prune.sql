-- Guarantees: each line has one winner among the surviving items: the newest by (version, document key, source_ts), the
-- later item of the request where those are equal. Keys are lower-case hex and compared byte by byte.
UPDATE {{.Row}} AS r
SET winner = 1
FROM (
    SELECT
        c.detail_id,
        c.doc,
        row_number() OVER (
            PARTITION BY c.detail_id
            ORDER BY i.version_us DESC, i.document_key DESC, i.source_ts DESC, c.doc DESC
        ) AS place
    FROM {{.Row}} AS c CROSS JOIN {{.Item}} AS i
    WHERE i.doc = c.doc AND c.missing = 0 AND i.left_out = 0
) AS o
WHERE o.place = 1 AND r.detail_id = o.detail_id AND r.doc = o.doc;
