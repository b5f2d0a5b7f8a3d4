-- The sender counts the lines (@expected) and those of failure marks (@marks). @twice is 1 if two documents
-- have the same line.
-- With @expected = 0 the statements that write content run on no row, so that each still requires its rights
-- (deploy/sql/check_rights.sql).
DECLARE @write_id uniqueidentifier = NEWID();
DECLARE @rows int, @missing int, @winners int, @stamped int = 0, @changed int, @content int, @written int;
DECLARE @note nvarchar(4000);
