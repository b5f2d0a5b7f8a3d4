-- @expected is how many lines the request has, @marks how many of them are of failure marks, @twice whether some
-- line is named by two documents: the sender knows. With @expected = 0 the statements that write
-- content run all the same, each on no row, so that each still asks for its rights (deploy/sql/check_rights.sql).
DECLARE @write_id uniqueidentifier = NEWID();
DECLARE @rows int, @missing int, @winners int, @stamped int = 0, @changed int, @content int, @written int;
DECLARE @note nvarchar(4000);
