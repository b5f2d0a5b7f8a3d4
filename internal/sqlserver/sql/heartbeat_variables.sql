DECLARE @committed_id varchar(36), @committed bigint, @there int;
