-- Guarantees: each line of a document is staged once, keyed (detail_id, doc). A line of ?1: detail id, item's
-- number, position within the item, row hash of each table, then the values of this line (NULL for a mark). The
-- hashes are places in ?2.
INSERT INTO {{.Row}} (
    detail_id, doc, position, detail_row_hash, tracking_row_hash{{range .LineColumns}},
    {{.Staged}}{{end}}
)
SELECT
    j.value ->> 0, j.value ->> 1, j.value ->> 2,
    substr(?2, 32 * (j.value ->> 3) + 1, 32), substr(?2, 32 * (j.value ->> 4) + 1, 32){{range .LineColumns}},
    j.value ->> {{.Position}}{{end}}
FROM jsonb_each(?1, '$.lines') AS j;
