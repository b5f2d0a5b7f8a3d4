-- A row of each line of the examples, which a document needs.
INSERT INTO {{.DetailTable}} ({{.DetailKey}})
SELECT j.line
FROM OPENJSON (@lines) WITH (line bigint '$') AS j
WHERE NOT EXISTS (SELECT 1 FROM {{.DetailTable}} AS d WHERE d.{{.DetailKey}} = j.line);
