-- The bare write as a stored procedure: what bare.sql does, installed once and called by name.
CREATE PROCEDURE dbo.bench_bare @request nvarchar(max)
AS
BEGIN
{{template "bare.sql" .}}
END;
