-- The second step from a build that sent its writes as text to builds that call procedures: when no build of the first kind
-- runs any more, in any slot, and none will be rolled back to, the app's role loses what only those needed
-- (docs/runbook.md). Run app_rights.sql first: builds of both kinds then run together.
REVOKE UPDATE ON OBJECT::dbo.IVCE_DTL FROM sqlwriter_writers;
REVOKE INSERT, UPDATE ON OBJECT::dbo.IVCE_TRKG_MSTR FROM sqlwriter_writers;
REVOKE SELECT, INSERT, UPDATE ON SCHEMA::sqlwriter FROM sqlwriter_writers;
