{{if .LockTimeout -}}
SET XACT_ABORT ON;
SET LOCK_TIMEOUT {{.LockTimeout}};
{{end -}}
