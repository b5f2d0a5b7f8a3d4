-- Adds failures of documents in a batch. A row of @rows: position, document, main line, code, message, type, retries,
-- retryable.
{{template "begin.sql" . -}}
INSERT INTO {{.Prefix}}error_detail (
    sys_name, run_id, batch_id, document_id, entity_id, error_code, error_message, error_type, retry_count, is_retryable,
    created_at
)
SELECT
    @sys_name, @run, @batch, n.listed_document, n.listed_entity, n.listed_code, n.listed_message,
    n.listed_type, n.listed_retries, n.listed_retryable, {{.Now}}
FROM
    {{.List "rows" "listed_position int" "listed_document nvarchar(1023)" "listed_entity bigint" "listed_code nvarchar(256)" "listed_message nvarchar(2000)" "listed_type varchar(20)" "listed_retries int" "listed_retryable bit"}} AS n
ORDER BY n.listed_position;
