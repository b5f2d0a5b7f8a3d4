-- Guarantees: a document with a missing line is left out (all or nothing). A failure mark loses only that line.
UPDATE {{.Item}}
SET left_out = 1
WHERE mark = 0 AND doc IN (SELECT r.doc FROM {{.Row}} AS r WHERE r.missing = 1);
