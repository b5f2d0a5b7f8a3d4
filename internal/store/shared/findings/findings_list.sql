-- Findings of a class, by line and key, and with @suspects its suspects. Of the line @from they have a key after
-- @after_key.
SELECT{{.Top}}
    f.detail_id, f.document_id, f.first_seen, f.last_seen, f.mark, f.sure, f.detail, f.mends
FROM {{.Prefix}}finding AS f
WHERE
    f.sys_name = @sys_name AND f.class = @class
    AND f.detail_id >= @from AND f.detail_id <= @to
    AND (f.detail_id > @from OR f.document_key > {{.OneHash "after_key"}})
    AND (@suspects = 1 OR f.sure = 1) AND (@mends = 0 OR f.mends = 1)
ORDER BY f.detail_id, f.document_key{{.Limit}};
