-- The heartbeat: one row for each environment. Its number is raised and committed to see that the database takes writes.
-- database_id is made with the row, so that another database can be told from this one. raised_at is by the database's
-- clock, UTC. The name of an environment is compared byte by byte whatever the database's collation.
CREATE TABLE sqlwriter.heartbeat (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    database_id uniqueidentifier NOT NULL,
    number bigint NOT NULL,
    raised_at datetime2(3) NOT NULL,
    CONSTRAINT pk_heartbeat PRIMARY KEY (sys_name)
);
