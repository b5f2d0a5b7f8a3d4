n.place <= @most - (
        SELECT COUNT(*) FROM {{.Finding}} AS o
        WHERE o.sys_name = @sys_name AND o.state = 'open' AND o.class = @class
    )
{{- /**/ -}}
