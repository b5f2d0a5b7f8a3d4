-- Guarantees: a row for each line of @lines, [[id] ...], with its ledger row and its present rows, as far as they
-- exist. The ledger's rows stay locked until the statement ends, so that no write comes between a ledger row and its
-- line. The user's rows are the present ones, also in a database with READ_COMMITTED_SNAPSHOT.
SELECT
    s.detail_id, {{template "compared" .}}
FROM OPENJSON (@lines) WITH (detail_id bigint '$[0]') AS s
LEFT JOIN {{.Ledger}} AS l WITH (REPEATABLEREAD) ON l.detail_id = s.detail_id
LEFT JOIN {{.DetailTable}} AS d WITH (READCOMMITTEDLOCK) ON d.{{.DetailKey}} = s.detail_id
LEFT JOIN {{.TrackingTable}} AS t WITH (READCOMMITTEDLOCK) ON t.{{.TrackingKey}} = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
