-- For how many days the audit log of an environment is kept: 365 or more, and for ever without a row.
-- A DBA runs this in the database of IVCE_DTL; the app may not. Replace web by the environment (SYS_NAME), and the days.
DELETE FROM sqlwriter.audit_retention WHERE sys_name = N'web';
INSERT INTO sqlwriter.audit_retention (sys_name, kept_days) VALUES (N'web', 3650);
