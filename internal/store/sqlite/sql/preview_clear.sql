DELETE FROM {{.Copy}};
