DECLARE @committed_id varchar(36), @committed bigint, @note nvarchar(400);
