-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding. One that is no
-- longer true is deleted. document_key is the SHA-256 of document_id. What a first look saw is a suspect, until a
-- second one sees it with the same mark: then it is sure.
-- All times are UTC by the database's clock. Classes are not checked, because a later build may have more.
-- Keys are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.finding (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    class varchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_id bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    first_seen datetime2(3) NOT NULL,
    last_seen datetime2(3) NOT NULL,
    mark varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    sure bit NOT NULL,
    detail nvarchar(1000) NOT NULL,
    mends bit NOT NULL,
    CONSTRAINT pk_finding PRIMARY KEY (sys_name, class, detail_id, document_key)
);
-- One row for each comparison. request has the documents that it names, as JSON, until it has ended. step counts what
-- was saved: only whoever read it before may save the next one.
CREATE TABLE sqlwriter.comparison (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    comparison_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    request nvarchar(max) NOT NULL CHECK (ISJSON(request) = 1),
    named bit NOT NULL,
    night bit NOT NULL,
    requested_by nvarchar(256) NOT NULL,
    why nvarchar(2000) NOT NULL,
    step bigint NOT NULL,
    position nvarchar(max) NOT NULL,
    counts nvarchar(max) NOT NULL CHECK (ISJSON(counts) = 1),
    error nvarchar(1000) NULL,
    begun_at datetime2(3) NOT NULL,
    moved_at datetime2(3) NOT NULL,
    ended_at datetime2(3) NULL,
    CONSTRAINT pk_comparison PRIMARY KEY (sys_name, comparison_id)
);
-- The first of those that go on, and the last that ended, by their begin.
CREATE INDEX ix_comparison_begun ON sqlwriter.comparison (sys_name, begun_at, comparison_id);
