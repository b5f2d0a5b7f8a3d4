-- Deletes the environment's findings that are gone and were last seen more than @days ago, the oldest first.
DELETE FROM sqlwriter_finding
WHERE (sys_name, class, detail_id, document_key) IN (
    SELECT f.sys_name, f.class, f.detail_id, f.document_key
    FROM sqlwriter_finding AS f
    WHERE f.sys_name = @sys_name AND f.state = 'gone' AND f.last_seen < {{template "before"}}
    ORDER BY f.last_seen
    LIMIT @limit
);
