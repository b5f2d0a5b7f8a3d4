-- The ledger: which document each line was written from, for ever (never purged). It serves idempotency, the guard against
-- older results and lost acknowledgements. The row hashes are of the rows as they were written, and
-- show later edits. A failure mark and an adopted row have none (docs/requirements.md R54).
-- Keys and hashes are lower-case hex, compared byte by byte whatever the database's collation.
CREATE TABLE sqlwriter.ledger (
    detail_id bigint NOT NULL,
    version_us bigint NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_id nvarchar(1023) NOT NULL,
    source_ts bigint NOT NULL,
    content_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    hash_version int NULL,
    sys_name nvarchar(256) COLLATE Latin1_General_BIN2 NOT NULL,
    detail_row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    tracking_row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    outcome varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    write_id uniqueidentifier NOT NULL,
    applied_at datetime2(3) NOT NULL,
    CONSTRAINT pk_ledger PRIMARY KEY CLUSTERED (detail_id),
    CONSTRAINT ck_ledger_outcome CHECK (outcome IN ('applied', 'failed', 'adopted')),
    CONSTRAINT ck_ledger_hash CHECK (
        (outcome = 'failed' AND content_hash IS NULL AND hash_version IS NULL)
        OR (outcome <> 'failed' AND content_hash IS NOT NULL AND hash_version IS NOT NULL)
    )
);
