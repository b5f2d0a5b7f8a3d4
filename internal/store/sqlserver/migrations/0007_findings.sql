-- What a comparison of SQL with the documents found (internal/reconcile): one row for each finding, kept when it is
-- gone. detail_id is 0 for a finding without a line. document_key is the SHA-256 of document_id, also of the empty one.
-- row_hash identifies the line's rows as the run saw them, and accepted_hash as a person accepted them.
-- All times are UTC by the database's clock.
-- Classes, states and ways to mend are not checked, because a later build may have more.
-- Keys, states and hashes are compared byte by byte under any collation of the database.
CREATE TABLE sqlwriter.finding (
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    class varchar(40) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_id bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    state varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    first_seen datetime2(3) NOT NULL,
    last_seen datetime2(3) NOT NULL,
    run_id nvarchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    row_hash varchar(128) COLLATE Latin1_General_BIN2 NOT NULL,
    detail nvarchar(1000) NOT NULL,
    mend varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    queued_by nvarchar(64) NULL,
    accepted_hash varchar(128) COLLATE Latin1_General_BIN2 NULL,
    accepted_by nvarchar(256) NULL,
    why nvarchar(2000) NULL,
    CONSTRAINT pk_finding PRIMARY KEY (sys_name, class, detail_id, document_key)
);
-- Findings are counted and listed by state, and those that are gone stay in the table.
CREATE INDEX ix_finding_state
    ON sqlwriter.finding (sys_name, state, class, detail_id, document_key) INCLUDE (first_seen);
-- The last runs of a kind, which may be few among all.
CREATE INDEX ix_run_kind ON sqlwriter.run (kind, run_number) INCLUDE (sys_name, status);
