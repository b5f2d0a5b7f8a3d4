-- The bare write: the documents and their lines into temp tables, then the three statements. Nothing is checked, and
-- nothing is kept beside the user's tables. A line of its own ends each statement; each is prepared once.
CREATE TEMP TABLE bench_item (
    doc INTEGER PRIMARY KEY, {{list .Document "NAME"}}
)
;
CREATE TEMP TABLE bench_line (
    IVCE_DTL_UID INTEGER PRIMARY KEY, doc INTEGER, {{list .Line "NAME"}}
)
;
DELETE FROM bench_item
;
DELETE FROM bench_line
;
WITH j AS MATERIALIZED (SELECT e.key, e.value FROM json_each(?1) AS e)
INSERT INTO bench_item
SELECT j.key, {{list .Document "j.value ->> PLACE"}}
FROM j
;
WITH j AS MATERIALIZED (
    SELECT i.key AS doc, e.value
    FROM json_each(?1) AS i, json_each(i.value, '$[0]') AS e
)
INSERT INTO bench_line
SELECT j.value ->> 0, j.doc, {{list .Line "j.value ->> PLACE"}}
FROM j
;
UPDATE IVCE_DTL AS t
SET {{list .Detail "NAME = s.NAME"}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.IVCE_DTL_UID
;
UPDATE IVCE_TRKG_MSTR AS t
SET {{list .Tracking "NAME = s.NAME"}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE t.IVCE_DTL_UID = +s.IVCE_DTL_UID
;
INSERT INTO IVCE_TRKG_MSTR (IVCE_DTL_UID, {{list .Tracking "NAME"}})
SELECT s.IVCE_DTL_UID, {{list .Tracking "s.NAME"}}
FROM (SELECT * FROM bench_line AS l CROSS JOIN bench_item AS i ON i.doc = l.doc) AS s
WHERE NOT EXISTS (SELECT 1 FROM IVCE_TRKG_MSTR AS t WHERE t.IVCE_DTL_UID = s.IVCE_DTL_UID)
;
