---- clear_items
-- Guarantees: the items of the previous request are gone.
DELETE FROM sqlwriter_item;
---- clear_rows
-- Guarantees: the lines of the previous request are gone.
DELETE FROM sqlwriter_row;
---- send
-- Guarantees: the request has a new write id from the database. A request that is sent twice is two writes.
-- ?1 is the environment.
INSERT OR REPLACE INTO sqlwriter_send (one, sys_name, write_id, sent_at)
VALUES (1, ?1, lower(hex(randomblob(16))), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
---- load_items
-- Guarantees: each document of the request is staged once, as text and in its order. ?1 is the request's JSON
-- parameter. An item: number, id, key, version, source_ts, hash, hash version, mark, leave since, then the values that
-- all lines share (NULL for a mark). Key and hash are places in ?2.
INSERT INTO sqlwriter_item (
    doc, document_id, document_key, version_us, source_ts, content_hash, hash_version, mark,
    leave_since,
    d0,
    d1,
    d2,
    d3,
    d4,
    d5,
    d6,
    d7,
    d8,
    d9,
    d10,
    d11,
    d12,
    d13,
    d14,
    d15,
    d16,
    d17,
    d18
)
SELECT
    j.value ->> 0, j.value ->> 1, substr(?2, 32 * (j.value ->> 2) + 1, 32), j.value ->> 3, j.value ->> 4,
    substr(?2, 32 * (j.value ->> 5) + 1, 32), j.value ->> 6, j.value ->> 7, j.value ->> 8,
    j.value ->> 9,
    j.value ->> 10,
    j.value ->> 11,
    j.value ->> 12,
    j.value ->> 13,
    j.value ->> 14,
    j.value ->> 15,
    j.value ->> 16,
    j.value ->> 17,
    j.value ->> 18,
    j.value ->> 19,
    j.value ->> 20,
    j.value ->> 21,
    j.value ->> 22,
    j.value ->> 23,
    j.value ->> 24,
    j.value ->> 25,
    j.value ->> 26,
    j.value ->> 27
FROM jsonb_each(?1, '$.items') AS j;
---- load_rows
-- Guarantees: each line of a document is staged once, keyed (detail_id, doc). A line of ?1: detail id, item's
-- number, position within the item, row hash of each table, then the values of this line (NULL for a mark). The
-- hashes are places in ?2.
INSERT INTO sqlwriter_row (
    detail_id, doc, position, detail_row_hash, tracking_row_hash,
    l0,
    l1
)
SELECT
    j.value ->> 0, j.value ->> 1, j.value ->> 2,
    substr(?2, 32 * (j.value ->> 3) + 1, 32), substr(?2, 32 * (j.value ->> 4) + 1, 32),
    j.value ->> 5,
    j.value ->> 6
FROM jsonb_each(?1, '$.lines') AS j;
---- missing
-- Guarantees: a line without a detail row is marked as missing first. We never add a detail row.
UPDATE sqlwriter_row AS r
SET missing = 1
WHERE NOT EXISTS (SELECT 1 FROM "IVCE_DTL" AS t WHERE t."IVCE_DTL_UID" = r.detail_id);
---- leave_out
-- Guarantees: a document with a missing line is left out (all or nothing). A failure mark loses only that line.
UPDATE sqlwriter_item
SET left_out = 1
WHERE mark = 0 AND doc IN (SELECT r.doc FROM sqlwriter_row AS r WHERE r.missing = 1);
---- prune
-- Guarantees: each line has one winner among the remaining items: the newest by (version, document key,
-- source_ts), then the later item. A line that a rewrite leaves alone has none of its item.
UPDATE sqlwriter_row AS r
SET winner = 0
WHERE
    r.missing = 1
    OR r.verdict <> 'applied'
    OR EXISTS (SELECT 1 FROM sqlwriter_item AS i WHERE i.doc = r.doc AND i.left_out = 1)
    OR EXISTS (
        SELECT 1
        FROM sqlwriter_row AS c CROSS JOIN sqlwriter_item AS o CROSS JOIN sqlwriter_item AS i
        WHERE
            c.detail_id = r.detail_id AND c.doc <> r.doc AND c.verdict = 'applied' AND o.doc = c.doc AND o.left_out = 0 AND i.doc = r.doc
            AND (o.version_us, o.document_key, o.source_ts, o.doc) > (i.version_us, i.document_key, i.source_ts, i.doc)
    );
---- ledger_update
-- Guarantees (newest wins): only a newer document, or the same one, replaces a ledger row. The same document
-- needs a snapshot that is not older, and another content than the ledger has as written.
-- @mode is the mode. A rewrite also takes the same content, and an older one where a release names the ledger's row.
-- A failure mark skips lines that have, or may have, the content that failed.
-- The guard is part of the writing statement and compares only the target's columns with the staged line.
UPDATE sqlwriter_ledger AS l
SET
    version_us = s.version_us,
    document_key = s.document_key,
    document_id = s.document_id,
    source_ts = s.source_ts,
    content_hash = iif(s.mark, NULL, s.content_hash),
    hash_version = iif(s.mark, NULL, s.hash_version),
    sys_name = s.sys_name,
    detail_row_hash = s.detail_row_hash,
    tracking_row_hash = s.tracking_row_hash,
    outcome = iif(s.mark, 'failed', 'applied'),
    write_id = s.write_id,
    applied_at = s.sent_at
FROM (
    SELECT r.detail_id, r.detail_row_hash, r.tracking_row_hash, i.*, w.write_id, w.sent_at, w.sys_name
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i CROSS JOIN sqlwriter_send AS w
    WHERE r.winner = 1 AND i.doc = r.doc
) AS s
WHERE
    l.detail_id = +s.detail_id
    AND (
        (l.version_us, l.document_key) < (s.version_us, s.document_key)
        OR (
            l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts
            AND ((s.mark = 0 AND @mode = 'rewrite') OR (
                l.content_hash IS NULL
                OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                OR (
                    s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                    AND max(l.source_ts, CAST(strftime('%s', l.applied_at) AS INTEGER)) < s.leave_since
                )
            ))
        )
        OR (@mode = 'rewrite' AND EXISTS (
            SELECT 1
            FROM json_each(@releases) AS p
            WHERE
                p.value ->> 0 = s.detail_id AND p.value ->> 1 = s.doc
                AND substr(@hashes, 32 * (p.value ->> 2) + 1, 32) = l.document_key
                AND p.value ->> 3 = l.write_id AND p.value ->> 4 = l.source_ts
        ))
    );
---- ledger_insert
-- Guarantees: a line without a ledger row gets one, stamped with this write. A row that appeared since
-- ledger_update.sql stays; the verdict then finds no evidence for this write.
INSERT INTO sqlwriter_ledger (
    detail_id, version_us, document_key, document_id, source_ts, content_hash, hash_version, sys_name,
    detail_row_hash, tracking_row_hash, outcome, write_id, applied_at
)
SELECT
    s.detail_id, s.version_us, s.document_key, s.document_id, s.source_ts, iif(s.mark, NULL, s.content_hash),
    iif(s.mark, NULL, s.hash_version), s.sys_name, s.detail_row_hash, s.tracking_row_hash,
    iif(s.mark, 'failed', 'applied'), s.write_id, s.sent_at
FROM (
    SELECT r.detail_id, r.detail_row_hash, r.tracking_row_hash, i.*, w.write_id, w.sent_at, w.sys_name
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i CROSS JOIN sqlwriter_send AS w
    WHERE r.winner = 1 AND i.doc = r.doc
) AS s
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter_ledger AS l WHERE l.detail_id = s.detail_id);
---- stamped
-- Guarantees: the number of lines whose ledger row has this write.
SELECT count(*)
FROM sqlwriter_row AS r CROSS JOIN sqlwriter_send AS w CROSS JOIN sqlwriter_ledger AS l
WHERE r.winner = 1 AND l.detail_id = r.detail_id AND l.write_id = w.write_id;
---- ledger_raise
-- Guarantees: a later snapshot of the same content raises source_ts and changes nothing else. A snapshot
-- between the two can then not restore older content. Skipped where verdict.sql is.
UPDATE sqlwriter_ledger AS l
SET source_ts = s.source_ts
FROM (
    SELECT r.detail_id, r.detail_row_hash, r.tracking_row_hash, i.*, w.write_id, w.sent_at, w.sys_name
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i CROSS JOIN sqlwriter_send AS w
    WHERE r.winner = 1 AND i.doc = r.doc
) AS s
WHERE
    l.detail_id = +s.detail_id
    AND l.document_key = s.document_key
    AND l.outcome IN ('applied', 'adopted')
    AND l.content_hash = s.content_hash
    AND l.hash_version = s.hash_version
    AND l.source_ts < s.source_ts;
---- verdict
-- Guarantees: every verdict depends on the ledger after the write. A line without evidence of this write, this
-- content or anything newer gets 'none'; the whole request is rolled back and made again.
-- Skipped if the ledger has this write for every line (stamped.sql).
-- A pruned row of the same document lost to a later item of this request, which may have been left alone.
UPDATE sqlwriter_row AS r
SET verdict = CASE
    WHEN s.missing THEN 'missing'
    WHEN s.left_out THEN ''
    WHEN r.verdict <> 'applied' THEN r.verdict
    WHEN
        s.ledger_write_id = s.write_id AND s.ledger_key = s.document_key AND s.ledger_ts = s.source_ts
        AND s.ledger_hash IS iif(s.mark, NULL, s.content_hash)
        AND s.ledger_hash_version IS iif(s.mark, NULL, s.hash_version)
        THEN 'applied'
    WHEN
        s.ledger_key = s.document_key AND s.ledger_outcome IN ('applied', 'adopted')
        AND s.ledger_hash = s.content_hash AND s.ledger_hash_version = s.hash_version
        THEN 'unchanged'
    WHEN
        s.ledger_us = s.version_us AND s.ledger_key = s.document_key
        AND s.ledger_hash_version <> s.hash_version
        AND (s.mark = 1 OR max(s.ledger_ts, s.ledger_at) >= s.leave_since)
        THEN 'not_comparable'
    WHEN
        s.ledger_us = s.version_us AND s.ledger_key = s.document_key
        AND s.ledger_hash_version <> s.hash_version AND s.ledger_ts >= s.source_ts
        THEN 'unchanged'
    WHEN
        (s.ledger_us, s.ledger_key) > (s.version_us, s.document_key)
        OR (
            s.ledger_us = s.version_us AND s.ledger_key = s.document_key
            AND (s.ledger_ts > s.source_ts OR s.winner = 0)
        )
        THEN 'superseded'
    ELSE 'none'
END
FROM (
    SELECT
        c.detail_id, c.missing, c.winner, i.*, w.write_id,
        l.version_us AS ledger_us, l.document_key AS ledger_key, l.source_ts AS ledger_ts,
        l.content_hash AS ledger_hash, l.hash_version AS ledger_hash_version, l.outcome AS ledger_outcome,
        l.write_id AS ledger_write_id, CAST(strftime('%s', l.applied_at) AS INTEGER) AS ledger_at
    FROM sqlwriter_row AS c CROSS JOIN sqlwriter_item AS i CROSS JOIN sqlwriter_send AS w
    LEFT JOIN sqlwriter_ledger AS l ON l.detail_id = c.detail_id
    WHERE i.doc = c.doc
) AS s
WHERE r.detail_id = s.detail_id AND r.doc = s.doc;
---- outcomes
-- Guarantees: one row for each line of the request, by item, main line first. A superseded line has the
-- document and version of its ledger row.
SELECT r.doc, r.position, r.verdict, r.winner, l.document_id, l.version_us, l.document_key
FROM sqlwriter_row AS r LEFT JOIN sqlwriter_ledger AS l ON r.verdict = 'superseded' AND l.detail_id = r.detail_id
ORDER BY r.doc, r.position;
---- detail_update
-- Guarantees: the detail rows of applied lines get every column of the mapping; one
-- that keeps its value, where the document has one. The caller checks their number.
UPDATE "IVCE_DTL" AS t
SET
    "CLN_MFR_AI_NM" = s.d0,
    "CLN_MFR_PRT_NUM" = s.d1,
    "UNSPSC_CD" = s.d2,
    "UPC_CD" = s.d3,
    "AKS_PRT_NUM" = s.d4,
    "ITM_AI_LDSC" = s.d5,
    "IVCE_LNE_STAT" = iif(s.keep_status, t."IVCE_LNE_STAT", s.d6),
    "DATA_VRFN_IND" = s.d7,
    "WEB_SRCH_URL" = s.d8,
    "MFR_CNFDC_SCR" = s.d9,
    "PRT_NUM_CNFDC_SCR" = s.d10,
    "UNSPSC_CNFDC_SCR" = s.d11,
    "AI_STG_NM" = s.d12,
    "PRNT_IVCE_DTL_ID" = s.l0
FROM (
    SELECT r.detail_id, r.keep_status, r.l0, r.l1, i.*
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
) AS s
WHERE t."IVCE_DTL_UID" = +s.detail_id AND s.mark = 0;
---- detail_mark
-- Guarantees: a failure mark changes only the line status of its applied lines. ?1 is the status.
UPDATE "IVCE_DTL" AS t
SET "IVCE_LNE_STAT" = ?1
FROM (
    SELECT r.detail_id, r.keep_status, r.l0, r.l1, i.*
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
) AS s
WHERE t."IVCE_DTL_UID" = +s.detail_id AND s.mark = 1;
---- tracking_update
-- Guarantees: existing tracking rows get every column of the mapping; one that keeps its value,
-- where the document has one. Failure marks do not change this table.
UPDATE "IVCE_TRKG_MSTR" AS t
SET
    "CLN_MFR_AI_NM" = s.d0,
    "CLN_MFR_PRT_NUM" = s.d1,
    "UNSPSC_CD" = s.d2,
    "UPC_CD" = s.d3,
    "AKS_PRT_NUM" = s.d4,
    "ITM_AI_LDSC" = s.d5,
    "IVCE_LNE_STAT" = iif(s.keep_status, t."IVCE_LNE_STAT", s.d6),
    "MFR_CNFDC_SCR" = s.d9,
    "PRT_NUM_CNFDC_SCR" = s.d10,
    "UNSPSC_CNFDC_SCR" = s.d11,
    "AI_STG_NM" = s.d12,
    "MFR_STG_NM" = s.d13,
    "PRT_NUM_STG_NM" = s.d14,
    "UNSPSC_STG_NM" = s.d15,
    "RQST_TS" = s.d16,
    "PRCS_STRT_TS" = s.d17,
    "PRCS_END_TS" = s.d18,
    "DUP_IND" = s.l1,
    "PRNT_IVCE_DTL_ID" = s.l0,
    "DATA_VRFN_IND" = s.d7,
    "WEB_SRCH_URL" = s.d8
FROM (
    SELECT r.detail_id, r.keep_status, r.l0, r.l1, i.*
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
) AS s
WHERE t."IVCE_DTL_UID" = +s.detail_id AND s.mark = 0;
---- tracking_insert
-- Guarantees: an applied line without a tracking row gets one. The caller requires that updated and inserted
-- rows together equal the applied lines. Neither count includes a row that another session adds in between.
INSERT INTO "IVCE_TRKG_MSTR" (
    "IVCE_DTL_UID",
    "CLN_MFR_AI_NM",
    "CLN_MFR_PRT_NUM",
    "UNSPSC_CD",
    "UPC_CD",
    "AKS_PRT_NUM",
    "ITM_AI_LDSC",
    "IVCE_LNE_STAT",
    "MFR_CNFDC_SCR",
    "PRT_NUM_CNFDC_SCR",
    "UNSPSC_CNFDC_SCR",
    "AI_STG_NM",
    "MFR_STG_NM",
    "PRT_NUM_STG_NM",
    "UNSPSC_STG_NM",
    "RQST_TS",
    "PRCS_STRT_TS",
    "PRCS_END_TS",
    "DUP_IND",
    "PRNT_IVCE_DTL_ID",
    "DATA_VRFN_IND",
    "WEB_SRCH_URL"
)
SELECT
    s.detail_id,
    s.d0,
    s.d1,
    s.d2,
    s.d3,
    s.d4,
    s.d5,
    s.d6,
    s.d9,
    s.d10,
    s.d11,
    s.d12,
    s.d13,
    s.d14,
    s.d15,
    s.d16,
    s.d17,
    s.d18,
    s.l1,
    s.l0,
    s.d7,
    s.d8
FROM (
    SELECT r.detail_id, r.keep_status, r.l0, r.l1, i.*
    FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i
    WHERE r.winner = 1 AND r.verdict = 'applied' AND i.doc = r.doc
) AS s
WHERE s.mark = 0 AND NOT EXISTS (SELECT 1 FROM "IVCE_TRKG_MSTR" AS t WHERE t."IVCE_DTL_UID" = s.detail_id);
---- rewrite_read
-- Guarantees: each line that has a ledger row and that a rewrite would write, with the ledger's hashes and the values
-- of both rows as text, in the order of the column table. keep_status is 1 where a write would say unchanged.
-- tracked is 1 for a line with a tracking row; the others have NULL as its values. The content's hash is NULL of an
-- older document.
SELECT
    s.doc, s.position, NOT ((l.version_us, l.document_key) < (s.version_us, s.document_key) OR (
                l.content_hash IS NULL
                OR (l.hash_version = s.hash_version AND l.content_hash <> s.content_hash)
                OR (
                    s.mark = 0 AND l.hash_version <> s.hash_version AND l.source_ts < s.source_ts
                    AND max(l.source_ts, CAST(strftime('%s', l.applied_at) AS INTEGER)) < s.leave_since
                )
            )) AS keep_status,
    iif((l.version_us, l.document_key) < (s.version_us, s.document_key), NULL, l.content_hash), l.hash_version, l.detail_row_hash, l.tracking_row_hash, t."IVCE_DTL_UID" IS NOT NULL AS tracked,
    CAST(d."CLN_MFR_AI_NM" AS TEXT),
    CAST(d."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(d."UNSPSC_CD" AS TEXT),
    CAST(d."UPC_CD" AS TEXT),
    CAST(d."AKS_PRT_NUM" AS TEXT),
    CAST(d."ITM_AI_LDSC" AS TEXT),
    CAST(d."IVCE_LNE_STAT" AS TEXT),
    CAST(d."DATA_VRFN_IND" AS TEXT),
    CAST(d."WEB_SRCH_URL" AS TEXT),
    CAST(d."MFR_CNFDC_SCR" AS TEXT),
    CAST(d."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(d."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(d."AI_STG_NM" AS TEXT),
    CAST(d."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."CLN_MFR_AI_NM" AS TEXT),
    CAST(t."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(t."UNSPSC_CD" AS TEXT),
    CAST(t."UPC_CD" AS TEXT),
    CAST(t."AKS_PRT_NUM" AS TEXT),
    CAST(t."ITM_AI_LDSC" AS TEXT),
    CAST(t."IVCE_LNE_STAT" AS TEXT),
    CAST(t."MFR_CNFDC_SCR" AS TEXT),
    CAST(t."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(t."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(t."AI_STG_NM" AS TEXT),
    CAST(t."MFR_STG_NM" AS TEXT),
    CAST(t."PRT_NUM_STG_NM" AS TEXT),
    CAST(t."UNSPSC_STG_NM" AS TEXT),
    CAST(t."RQST_TS" AS TEXT),
    CAST(t."PRCS_STRT_TS" AS TEXT),
    CAST(t."PRCS_END_TS" AS TEXT),
    CAST(t."DUP_IND" AS TEXT),
    CAST(t."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."DATA_VRFN_IND" AS TEXT),
    CAST(t."WEB_SRCH_URL" AS TEXT)
FROM
    (SELECT r.detail_id, r.position, i.* FROM sqlwriter_row AS r CROSS JOIN sqlwriter_item AS i WHERE i.doc = r.doc) AS s
    CROSS JOIN sqlwriter_ledger AS l
    CROSS JOIN "IVCE_DTL" AS d
    LEFT JOIN "IVCE_TRKG_MSTR" AS t ON t."IVCE_DTL_UID" = d."IVCE_DTL_UID"
WHERE
    s.mark = 0 AND l.detail_id = s.detail_id AND d."IVCE_DTL_UID" = s.detail_id
    AND ((l.version_us, l.document_key) < (s.version_us, s.document_key) OR (l.version_us = s.version_us AND l.document_key = s.document_key AND l.source_ts <= s.source_ts) OR EXISTS (
            SELECT 1
            FROM json_each(@releases) AS p
            WHERE
                p.value ->> 0 = s.detail_id AND p.value ->> 1 = s.doc
                AND substr(@hashes, 32 * (p.value ->> 2) + 1, 32) = l.document_key
                AND p.value ->> 3 = l.write_id AND p.value ->> 4 = l.source_ts
        ));
---- rewrite_line
-- Guarantees: line ?1 of item ?2 has a verdict already, or keeps the status of its rows.
UPDATE sqlwriter_row
SET
    verdict = ?3,
    keep_status = ?4
WHERE detail_id = ?1 AND doc = ?2;
---- preview_clear
DELETE FROM sqlwriter_ledger_copy;
---- preview_ledger
-- Guarantees: the ledger rows of the request, in a temp table. A preview runs the statements of a write on this
-- copy. The same guards so decide its outcomes, and nothing is written.
INSERT INTO sqlwriter_ledger_copy
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.detail_row_hash, l.tracking_row_hash, l.outcome, l.write_id, l.applied_at
FROM (SELECT DISTINCT r.detail_id FROM sqlwriter_row AS r) AS d CROSS JOIN main.sqlwriter_ledger AS l
WHERE l.detail_id = d.detail_id;
---- preview_before
-- Guarantees: the present values of every line with a detail row, as text and in the order of the column table.
-- Tracking values are NULL for a line without a tracking row.
SELECT
    r.detail_id,
    CAST(d."CLN_MFR_AI_NM" AS TEXT),
    CAST(d."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(d."UNSPSC_CD" AS TEXT),
    CAST(d."UPC_CD" AS TEXT),
    CAST(d."AKS_PRT_NUM" AS TEXT),
    CAST(d."ITM_AI_LDSC" AS TEXT),
    CAST(d."IVCE_LNE_STAT" AS TEXT),
    CAST(d."DATA_VRFN_IND" AS TEXT),
    CAST(d."WEB_SRCH_URL" AS TEXT),
    CAST(d."MFR_CNFDC_SCR" AS TEXT),
    CAST(d."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(d."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(d."AI_STG_NM" AS TEXT),
    CAST(d."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."CLN_MFR_AI_NM" AS TEXT),
    CAST(t."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(t."UNSPSC_CD" AS TEXT),
    CAST(t."UPC_CD" AS TEXT),
    CAST(t."AKS_PRT_NUM" AS TEXT),
    CAST(t."ITM_AI_LDSC" AS TEXT),
    CAST(t."IVCE_LNE_STAT" AS TEXT),
    CAST(t."MFR_CNFDC_SCR" AS TEXT),
    CAST(t."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(t."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(t."AI_STG_NM" AS TEXT),
    CAST(t."MFR_STG_NM" AS TEXT),
    CAST(t."PRT_NUM_STG_NM" AS TEXT),
    CAST(t."UNSPSC_STG_NM" AS TEXT),
    CAST(t."RQST_TS" AS TEXT),
    CAST(t."PRCS_STRT_TS" AS TEXT),
    CAST(t."PRCS_END_TS" AS TEXT),
    CAST(t."DUP_IND" AS TEXT),
    CAST(t."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."DATA_VRFN_IND" AS TEXT),
    CAST(t."WEB_SRCH_URL" AS TEXT)
FROM
    (SELECT DISTINCT c.detail_id FROM sqlwriter_row AS c WHERE c.missing = 0) AS r
    CROSS JOIN "IVCE_DTL" AS d
    LEFT JOIN "IVCE_TRKG_MSTR" AS t ON t."IVCE_DTL_UID" = d."IVCE_DTL_UID"
WHERE d."IVCE_DTL_UID" = r.detail_id;
---- heartbeat
-- Guarantees: the number of the environment ?1 becomes the greatest of three: its own plus 1, the milliseconds
-- since 1970, and ?2 plus 1. Without ?4 an existing row stays as it is. A new row gets a new id; with ?3 = 1 an
-- existing row gets one too. The answer is the row.
INSERT INTO sqlwriter_heartbeat (sys_name, database_id, number, raised_at)
VALUES (
    ?1, lower(hex(randomblob(16))), max(?2 + 1, CAST(unixepoch('subsec') * 1000 AS INTEGER)), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
)
ON CONFLICT (sys_name) DO UPDATE SET
    number = iif(?4, max(number + 1, excluded.number), number),
    database_id = iif(?3, excluded.database_id, database_id),
    raised_at = excluded.raised_at
RETURNING database_id, number;
---- heartbeat_row
-- Guarantees: the row of the environment ?1, if there is one.
SELECT
    database_id,
    number
FROM sqlwriter_heartbeat
WHERE sys_name = ?1;
---- temp
-- Guarantees: a connection has the temp tables of a request and the copy of the ledger for a preview. The
-- script runs once for a connection, because the prepared statements need the tables.
CREATE TEMP TABLE IF NOT EXISTS sqlwriter_item (
    doc INTEGER PRIMARY KEY,
    document_id TEXT NOT NULL,
    document_key BLOB NOT NULL,
    version_us INTEGER NOT NULL,
    source_ts INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    hash_version INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    leave_since INTEGER NOT NULL,
    d0 TEXT,
    d1 TEXT,
    d2 TEXT,
    d3 TEXT,
    d4 TEXT,
    d5 TEXT,
    d6 TEXT,
    d7 TEXT,
    d8 TEXT,
    d9 TEXT,
    d10 TEXT,
    d11 TEXT,
    d12 TEXT,
    d13 TEXT,
    d14 TEXT,
    d15 TEXT,
    d16 TEXT,
    d17 TEXT,
    d18 TEXT,
    left_out INTEGER NOT NULL DEFAULT 0
);
CREATE TEMP TABLE IF NOT EXISTS sqlwriter_row (
    detail_id INTEGER NOT NULL,
    doc INTEGER NOT NULL,
    position INTEGER NOT NULL,
    detail_row_hash BLOB,
    tracking_row_hash BLOB,
    l0 TEXT,
    l1 TEXT,
    missing INTEGER NOT NULL DEFAULT 0,
    winner INTEGER NOT NULL DEFAULT 1,
    verdict TEXT NOT NULL DEFAULT 'applied',
    keep_status INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (detail_id, doc)
) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS sqlwriter_send (
    one INTEGER PRIMARY KEY,
    sys_name TEXT NOT NULL,
    write_id TEXT NOT NULL,
    sent_at TEXT NOT NULL
);
CREATE TEMP TABLE IF NOT EXISTS sqlwriter_ledger_copy (
    detail_id INTEGER PRIMARY KEY,
    version_us INTEGER,
    document_key BLOB,
    document_id TEXT,
    source_ts INTEGER,
    content_hash BLOB,
    hash_version INTEGER,
    sys_name TEXT,
    detail_row_hash BLOB,
    tracking_row_hash BLOB,
    outcome TEXT,
    write_id TEXT,
    applied_at TEXT
);
---- reconcile_scan
-- Guarantees: the next ledger rows by the key, at most @limit of them whatever their environment, each with the present
-- rows of its line. Lines of other environments come without their rows, which are not read.
SELECT
    l.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome, l.write_id, l.detail_row_hash, l.tracking_row_hash,
    @days > 0 AND coalesce(l.applied_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || @days || ' days'), FALSE),
    d."IVCE_DTL_UID" IS NOT NULL, t."IVCE_DTL_UID" IS NOT NULL,
    CAST(d."CLN_MFR_AI_NM" AS TEXT),
    CAST(d."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(d."UNSPSC_CD" AS TEXT),
    CAST(d."UPC_CD" AS TEXT),
    CAST(d."AKS_PRT_NUM" AS TEXT),
    CAST(d."ITM_AI_LDSC" AS TEXT),
    CAST(d."IVCE_LNE_STAT" AS TEXT),
    CAST(d."DATA_VRFN_IND" AS TEXT),
    CAST(d."WEB_SRCH_URL" AS TEXT),
    CAST(d."MFR_CNFDC_SCR" AS TEXT),
    CAST(d."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(d."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(d."AI_STG_NM" AS TEXT),
    CAST(d."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."CLN_MFR_AI_NM" AS TEXT),
    CAST(t."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(t."UNSPSC_CD" AS TEXT),
    CAST(t."UPC_CD" AS TEXT),
    CAST(t."AKS_PRT_NUM" AS TEXT),
    CAST(t."ITM_AI_LDSC" AS TEXT),
    CAST(t."IVCE_LNE_STAT" AS TEXT),
    CAST(t."MFR_CNFDC_SCR" AS TEXT),
    CAST(t."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(t."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(t."AI_STG_NM" AS TEXT),
    CAST(t."MFR_STG_NM" AS TEXT),
    CAST(t."PRT_NUM_STG_NM" AS TEXT),
    CAST(t."UNSPSC_STG_NM" AS TEXT),
    CAST(t."RQST_TS" AS TEXT),
    CAST(t."PRCS_STRT_TS" AS TEXT),
    CAST(t."PRCS_END_TS" AS TEXT),
    CAST(t."DUP_IND" AS TEXT),
    CAST(t."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."DATA_VRFN_IND" AS TEXT),
    CAST(t."WEB_SRCH_URL" AS TEXT)
FROM
    (SELECT * FROM sqlwriter_ledger WHERE detail_id > @after ORDER BY detail_id LIMIT @limit) AS l
    LEFT JOIN "IVCE_DTL" AS d ON d."IVCE_DTL_UID" = l.detail_id AND l.sys_name = @sys_name
    LEFT JOIN "IVCE_TRKG_MSTR" AS t ON t."IVCE_DTL_UID" = l.detail_id AND l.sys_name = @sys_name
ORDER BY l.detail_id;
---- reconcile_lines
-- Guarantees: a row for each line of @lines, [[id] ...], with its ledger row and its present rows, as far as they exist.
SELECT
    s.detail_id, l.version_us, l.document_key, l.document_id, l.source_ts, l.content_hash, l.hash_version, l.sys_name,
    l.outcome, l.write_id, l.detail_row_hash, l.tracking_row_hash,
    @days > 0 AND coalesce(l.applied_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || @days || ' days'), FALSE),
    d."IVCE_DTL_UID" IS NOT NULL, t."IVCE_DTL_UID" IS NOT NULL,
    CAST(d."CLN_MFR_AI_NM" AS TEXT),
    CAST(d."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(d."UNSPSC_CD" AS TEXT),
    CAST(d."UPC_CD" AS TEXT),
    CAST(d."AKS_PRT_NUM" AS TEXT),
    CAST(d."ITM_AI_LDSC" AS TEXT),
    CAST(d."IVCE_LNE_STAT" AS TEXT),
    CAST(d."DATA_VRFN_IND" AS TEXT),
    CAST(d."WEB_SRCH_URL" AS TEXT),
    CAST(d."MFR_CNFDC_SCR" AS TEXT),
    CAST(d."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(d."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(d."AI_STG_NM" AS TEXT),
    CAST(d."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."CLN_MFR_AI_NM" AS TEXT),
    CAST(t."CLN_MFR_PRT_NUM" AS TEXT),
    CAST(t."UNSPSC_CD" AS TEXT),
    CAST(t."UPC_CD" AS TEXT),
    CAST(t."AKS_PRT_NUM" AS TEXT),
    CAST(t."ITM_AI_LDSC" AS TEXT),
    CAST(t."IVCE_LNE_STAT" AS TEXT),
    CAST(t."MFR_CNFDC_SCR" AS TEXT),
    CAST(t."PRT_NUM_CNFDC_SCR" AS TEXT),
    CAST(t."UNSPSC_CNFDC_SCR" AS TEXT),
    CAST(t."AI_STG_NM" AS TEXT),
    CAST(t."MFR_STG_NM" AS TEXT),
    CAST(t."PRT_NUM_STG_NM" AS TEXT),
    CAST(t."UNSPSC_STG_NM" AS TEXT),
    CAST(t."RQST_TS" AS TEXT),
    CAST(t."PRCS_STRT_TS" AS TEXT),
    CAST(t."PRCS_END_TS" AS TEXT),
    CAST(t."DUP_IND" AS TEXT),
    CAST(t."PRNT_IVCE_DTL_ID" AS TEXT),
    CAST(t."DATA_VRFN_IND" AS TEXT),
    CAST(t."WEB_SRCH_URL" AS TEXT)
FROM
    (SELECT value ->> '$[0]' AS detail_id FROM json_each(@lines)) AS s
    LEFT JOIN sqlwriter_ledger AS l ON l.detail_id = s.detail_id
    LEFT JOIN "IVCE_DTL" AS d ON d."IVCE_DTL_UID" = s.detail_id
    LEFT JOIN "IVCE_TRKG_MSTR" AS t ON t."IVCE_DTL_UID" = s.detail_id;
