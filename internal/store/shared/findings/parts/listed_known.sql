x.sys_name = l.listed_sys{{.BinaryCollation}} AND x.class = l.listed_class{{.BinaryCollation}}
            AND x.detail_id = l.listed_line AND x.document_key = l.listed_key{{.BinaryCollation}}
{{- /**/ -}}
