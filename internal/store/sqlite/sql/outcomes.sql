-- Guarantees: one row per line of the request, items in their order, the main line first; where the line is superseded
-- also which document holds it and its version.
SELECT r.doc, r.position, r.verdict, r.winner, l.document_id, l.version_us, l.document_key
FROM {{.Row}} AS r LEFT JOIN {{.Ledger}} AS l ON r.verdict = 'superseded' AND l.detail_id = r.detail_id
ORDER BY r.doc, r.position;
