-- Guarantees: the ledger rows of the request, in a temp table. A preview runs the statements of a write on this
-- copy. The same guards so decide its outcomes, and nothing is written.
CREATE TABLE {{.Ledger}} (
    detail_id bigint NOT NULL PRIMARY KEY,
    version_us bigint NOT NULL,
    document_key binary(32) NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    source_ts bigint NOT NULL,
    content_hash binary(32) NULL,
    hash_version int NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_row_hash binary(32) NULL,
    tracking_row_hash binary(32) NULL,
    outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    write_id uniqueidentifier NOT NULL,
    applied_at datetime2(3) NOT NULL
);
INSERT INTO {{.Ledger}} (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
    detail_row_hash, tracking_row_hash, outcome, write_id, applied_at
)
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.detail_row_hash, l.tracking_row_hash, l.outcome, l.write_id, l.applied_at
FROM (SELECT DISTINCT c.detail_id FROM #line AS c) AS s
INNER JOIN {{.RealLedger}} AS l ON l.detail_id = s.detail_id
OPTION (LOOP JOIN, FORCE ORDER);
