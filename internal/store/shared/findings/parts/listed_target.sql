    f.sys_name = n.listed_sys{{.BinaryCollation}} AND f.class = n.listed_class{{.BinaryCollation}}
    AND f.detail_id = n.listed_line AND f.document_key = n.listed_key{{.BinaryCollation}}
{{- /**/ -}}
