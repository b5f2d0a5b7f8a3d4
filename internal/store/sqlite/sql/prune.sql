-- Guarantees: each line has one winner among the remaining items: the newest by (version, document key,
-- source_ts), then the later item. A line that a rewrite leaves alone has none of its item.
UPDATE {{.Row}} AS r
SET winner = 0
WHERE
    r.missing = 1
    OR r.verdict <> 'applied'
    OR EXISTS (SELECT 1 FROM {{.Item}} AS i WHERE i.doc = r.doc AND i.left_out = 1)
    OR EXISTS (
        SELECT 1
        FROM {{.Row}} AS c CROSS JOIN {{.Item}} AS o CROSS JOIN {{.Item}} AS i
        WHERE
            c.detail_id = r.detail_id AND c.doc <> r.doc AND c.verdict = 'applied' AND o.doc = c.doc AND o.left_out = 0 AND i.doc = r.doc
            AND (o.version_us, o.document_key, o.source_ts, o.doc) > (i.version_us, i.document_key, i.source_ts, i.doc)
    );
