{{/* Parts that several steps share. */ -}}
{{/* The guard. newer: the staged line s is of a newer document than the ledger's row l. */ -}}
{{/* same: it is of the same document, and of no older snapshot. other: the ledger lacks its content. */ -}}
{{define "newer"}}(l.version_us < s.version_us OR (l.version_us = s.version_us AND l.document_key < s.document_key)){{end -}}
{{define "same"}}l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts{{end -}}
{{define "other"}}l.content_hash IS NULL
                OR (s.mark = 1 AND (l.content_hash <> s.content_hash OR l.hash_version <> s.hash_version))
                OR (
                    s.mark = 0
                    AND (
                        (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                        OR (l.hash_version <> s.hash_version AND l.source_ts < s.source_ts)
                    )
                ){{end -}}
