-- One row if an older run of the kind is running, or the run @follows.
SELECT 1 AS waits
WHERE
    EXISTS (
        SELECT 1 FROM {{.Run}} AS r
        WHERE
            r.status = 'running' AND r.sys_name = @sys_name AND {{.NoIndex}}r.kind = @kind
            AND r.run_number < (SELECT x.run_number FROM {{.Run}} AS x WHERE x.run_id = @run)
    )
    OR EXISTS (SELECT 1 FROM {{.Run}} AS r WHERE r.run_id = @follows AND r.status = 'running');
