-- The second step of the change from statements sent as text to procedures (docs/runbook.md). It revokes the rights
-- that only builds of the first kind need.
-- Run it when no slot has such a build and none will be restored. Run app_rights.sql first; builds of both kinds then
-- work together.
REVOKE UPDATE ON OBJECT::dbo.IVCE_DTL FROM sqlwriter_writers;
REVOKE INSERT, UPDATE ON OBJECT::dbo.IVCE_TRKG_MSTR FROM sqlwriter_writers;
REVOKE SELECT, INSERT, UPDATE ON SCHEMA::sqlwriter FROM sqlwriter_writers;
