-- Who said that documents were repaired by hand, oldest first. A row of @rows: document.
SELECT a.subject, a.done_at, a.done_by, a.why, a.detail
FROM {{.Prefix}}audit_log AS a
WHERE
    a.sys_name = @sys_name AND a.action = '{{.MarkCode}}'
    AND a.subject IN (SELECT n.listed_document FROM {{.List "rows" "listed_document nvarchar(1023)"}} AS n)
ORDER BY a.audit_id;
