{{/* Parts that several steps share. */ -}}
{{/* A hash of the parameter @hashes, by its place. */ -}}
{{define "hash"}}CAST(SUBSTRING(@hashes, 32 * {{.}} + 1, 32) AS binary(32)){{end -}}
{{/* The guard. newer: the staged line s is of a newer document than the ledger's row l. */ -}}
{{/* same: it is of the same document, and of no older snapshot. other: the ledger lacks its content. */ -}}
{{/* A line of another recipe is left alone that is as new as the commit of a document that a run takes over. A mark */ -}}
{{/* leaves every one alone: nobody can tell that the content is another. */ -}}
{{define "newer"}}(l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key)){{end -}}
{{define "same"}}l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts{{end -}}
{{define "other"}}l.content_hash IS NULL
                OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                OR (
                    s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                    AND l.source_ts < s.leave_since
                    AND DATEDIFF_BIG(SECOND, '1970-01-01', l.applied_at) < s.leave_since
                ){{end -}}
{{/* Of a rewrite: the ledger's row l is the one that a release of the staged line s names (@releases). */ -}}
{{define "released"}}s.doc IN (
            SELECT p.doc
            FROM
                OPENJSON (@releases) WITH (
                    detail_id bigint '$[0]',
                    doc int '$[1]',
                    document_key int '$[2]',
                    write_id varchar(36) '$[3]',
                    source_ts bigint '$[4]'
                ) AS p
            WHERE
                p.detail_id = l.detail_id
                AND {{template "hash" "p.document_key"}} = l.document_key
                AND p.write_id = LOWER(CAST(l.write_id AS varchar(36))) AND p.source_ts = l.source_ts
        ){{end -}}
{{/* A ledger row l, whether it was written more than @days ago (0 days: nothing was), which of the user's rows d and t of */ -}}
{{/* its line exist, and their values in the order of the column table. */ -}}
{{define "compared"}}l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version,
    l.sys_name, l.outcome, LOWER(CAST(l.write_id AS varchar(36))) AS write_id, l.detail_row_hash, l.tracking_row_hash,
    CASE WHEN @days > 0 AND l.applied_at < DATEADD(DAY, -@days, SYSUTCDATETIME()) THEN 1 ELSE 0 END AS is_old,
    CASE WHEN d.{{.DetailKey}} IS NULL THEN 0 ELSE 1 END AS in_detail,
    CASE WHEN t.{{.TrackingKey}} IS NULL THEN 0 ELSE 1 END AS in_tracking{{range .Columns}},
    {{if .InDetail}}d{{else}}t{{end}}.{{.Name}} AS {{.Label}}{{end}}{{end -}}
