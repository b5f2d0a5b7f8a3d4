-- Deletes the environment's comparisons that ended more than @days ago, but for the last one that ended well: its
-- beginning is where the next one begins.
DELETE FROM sqlwriter_comparison
WHERE (sys_name, comparison_id) IN (
    SELECT c.sys_name, c.comparison_id
    FROM sqlwriter_comparison AS c
    WHERE
        +c.sys_name = @sys_name AND c.ended_at < {{template "before"}}
        AND c.comparison_id IS NOT (
            SELECT l.comparison_id
            FROM sqlwriter_comparison AS l
            WHERE l.sys_name = @sys_name AND l.ended_at IS NOT NULL AND l.named = 0 AND l.error IS NULL
            ORDER BY l.begun_at DESC, l.comparison_id DESC
            LIMIT 1
        )
    ORDER BY c.ended_at
    LIMIT @limit
);
