-- Guarantees: the next ledger rows by the key, at most @limit of them whatever their environment, each with the present
-- rows of its line. Lines of other environments come without their rows, which are not read. The read takes no lasting
-- lock, so a write may come between a ledger row and its line.
SELECT
    l.detail_id, {{template "compared" .}}
FROM (
    SELECT TOP (@limit) o.*
    FROM {{.Ledger}} AS o
    WHERE o.detail_id > @after
    ORDER BY o.detail_id
) AS l
LEFT JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = l.detail_id AND l.sys_name = @sys_name
LEFT JOIN {{.TrackingTable}} AS t ON t.{{.TrackingKey}} = l.detail_id AND l.sys_name = @sys_name
ORDER BY l.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
