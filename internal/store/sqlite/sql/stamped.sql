-- Guarantees: the number of lines whose ledger row has this write.
SELECT count(*)
FROM {{.Row}} AS r CROSS JOIN {{.Send}} AS w CROSS JOIN {{.Ledger}} AS l
WHERE r.winner = 1 AND l.detail_id = r.detail_id AND l.write_id = w.write_id;
