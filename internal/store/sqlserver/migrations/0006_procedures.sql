-- The installed sets of procedures, one for each build and settings file. A set's hash ends the names of its
-- procedures; inputs lists everything that it depends on. The product never drops a set, because a stopped build may
-- need it.
-- A login with rights on the procedures of sqlwriter_preview alone can read verdicts and write nothing.
CREATE TABLE sqlwriter.procedure_set (
    set_hash char(12) COLLATE Latin1_General_BIN2 NOT NULL,
    inputs nvarchar(max) NOT NULL,
    installed_at datetime2(3) NOT NULL DEFAULT SYSUTCDATETIME(),
    installed_by nvarchar(256) NOT NULL DEFAULT SUSER_SNAME(),
    CONSTRAINT pk_procedure_set PRIMARY KEY (set_hash)
);
IF SCHEMA_ID(N'sqlwriter_preview') IS NULL
    EXEC (N'CREATE SCHEMA sqlwriter_preview AUTHORIZATION dbo');
