-- The heartbeat: one row for each environment. Committing a higher number shows that the database takes writes.
-- database_id is made with the row and tells databases apart. raised_at is UTC by the database's clock.
-- An environment's name is compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.heartbeat (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    database_id uniqueidentifier NOT NULL,
    number bigint NOT NULL,
    raised_at datetime2(3) NOT NULL,
    CONSTRAINT pk_heartbeat PRIMARY KEY (sys_name)
);
