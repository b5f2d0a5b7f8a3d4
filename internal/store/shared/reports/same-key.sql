-- Lines with one manufacturer and part number and several UNSPSC codes, among the newest 100,000 lines by their number
-- (docs/requirements.md R60). A line is sure if the confidence of each of the three values is 0.8 or more. Two codes of
-- sure lines contradict each other. Texts are equal if the database's collation says so. NULL is no value.
-- It answers no value of a row: a reader may ask for it. IVCE_DTL has no index of ours, and all of it would take too long.
WITH newest AS (
    SELECT{{.TopOf 100000}}
        l.detail_id
    FROM {{.Prefix}}ledger AS l
    WHERE
        l.sys_name = @sys_name
        AND l.outcome <> 'failed'
    ORDER BY l.detail_id DESC{{.LimitOf 100000}}
),

keyed AS (
    SELECT
        n.detail_id,
        d.{{.Column "process_output.manufacturer_name"}} AS manufacturer,
        d.{{.Column "process_output.part_number"}} AS part_number,
        d.{{.Column "process_output.unspsc"}} AS code,
        CASE
            WHEN
                CAST(d.{{.Column "process_output.manufacturer_name_confidence"}} AS float) >= 0.8
                AND CAST(d.{{.Column "process_output.part_number_confidence"}} AS float) >= 0.8
                AND CAST(d.{{.Column "process_output.unspsc_confidence"}} AS float) >= 0.8
                THEN 1
            ELSE 0
        END AS is_sure
    FROM newest AS n
    INNER JOIN {{.DetailTable}} AS d ON d.{{.DetailKey}} = n.detail_id
    WHERE
        d.{{.Column "process_output.manufacturer_name"}} <> ''
        AND d.{{.Column "process_output.part_number"}} <> ''
)

SELECT{{.Top}}
    COUNT(*) AS line_count,
    COUNT(DISTINCT k.code) AS code_count,
    SUM(k.is_sure) AS sure_lines,
    COUNT(DISTINCT CASE WHEN k.is_sure = 1 THEN k.code END) AS sure_codes,
    MIN(k.detail_id) AS first_line,
    MAX(k.detail_id) AS last_line
FROM keyed AS k
GROUP BY k.manufacturer, k.part_number
HAVING COUNT(DISTINCT k.code) > 1
ORDER BY sure_codes DESC, first_line ASC{{.Limit}};
