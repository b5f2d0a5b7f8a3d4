-- Guarantees: one row for each line of the request, by item, main line first. A superseded line has the
-- document and version of its ledger row.
SELECT r.doc, r.position, r.verdict, r.winner, l.document_id, l.version_us, l.document_key
FROM {{.Row}} AS r LEFT JOIN {{.Ledger}} AS l ON r.verdict = 'superseded' AND l.detail_id = r.detail_id
ORDER BY r.doc, r.position;
