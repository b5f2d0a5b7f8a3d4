-- Guarantees: the request has a table of its own, one row per line of each document, keyed (detail_id, doc). Texts and
-- numbers are wider here than in the user's columns: what is too wide is refused there instead of being cut here.
CREATE TABLE #line (
    detail_id bigint NOT NULL,
    doc int NOT NULL,
    position int NOT NULL,
    document_id nvarchar(max) NOT NULL,
    document_key char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    version_us bigint NOT NULL,
    source_ts bigint NOT NULL,
    content_hash char(64) COLLATE Latin1_General_BIN2 NOT NULL,
    hash_version int NOT NULL,
    row_hash char(64) COLLATE Latin1_General_BIN2 NULL,
    mark int NOT NULL,
    missing int NOT NULL DEFAULT 0,
    winner int NOT NULL DEFAULT 1,
    verdict varchar(10) NOT NULL DEFAULT 'applied',
    holder nvarchar(1023) NULL,
    holder_us bigint NULL,
    holder_key char(64) NULL{{range .Columns}},
    {{.Staged}} {{.StagedType}} NULL{{end}},
    PRIMARY KEY (detail_id, doc)
);
