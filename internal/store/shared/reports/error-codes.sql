-- The latest 10,000 failures of documents by code, the most frequent first (docs/requirements.md R85). All of a mass
-- failure would take seconds. errors_of_type counts those of all codes of the type. A document has a row for each run in
-- which it failed. sample_id is the document that failed last, sample_line its main line.
WITH latest AS (
    SELECT{{.TopOf 10000}}
        e.error_id,
        e.error_code,
        e.error_type,
        e.document_id,
        e.is_retryable,
        e.created_at
    FROM {{.Prefix}}error_detail AS e
    WHERE
        e.sys_name = @sys_name
        AND e.created_at > {{.SecondsAgo 604800}}
    ORDER BY e.created_at DESC{{.LimitOf 10000}}
),

sums AS (
    SELECT
        f.error_code,
        f.error_type,
        COUNT(*) AS errors,
        {{.Percent "COUNT(*)" "SUM(COUNT(*)) OVER ()"}} AS errors_percent,
        SUM(COUNT(*)) OVER (PARTITION BY f.error_type) AS errors_of_type,
        COUNT(DISTINCT f.document_id) AS documents,
        SUM(CASE WHEN f.is_retryable = 1 THEN 1 ELSE 0 END) AS retryable,
        SUM(
            CASE
                WHEN f.created_at > {{.SecondsAgo 3600}} THEN 1
                ELSE 0
            END
        ) AS last_hour,
        MIN(f.created_at) AS first_at,
        MAX(f.created_at) AS last_at,
        MAX(f.error_id) AS last_id
    FROM latest AS f
    GROUP BY f.error_code, f.error_type
)

SELECT{{.Top}}
    s.error_code,
    s.error_type,
    s.errors,
    s.errors_percent,
    s.errors_of_type,
    s.documents,
    s.retryable,
    s.last_hour,
    s.first_at,
    s.last_at,
    e.document_id AS sample_id,
    e.entity_id AS sample_line
FROM sums AS s
INNER JOIN {{.Prefix}}error_detail AS e ON e.error_id = s.last_id
ORDER BY s.errors DESC, s.error_code ASC, s.error_type ASC{{.Limit}};
