-- The state of the adoption of a database with history (internal/adopt), in at most one row. counts has the counts of
-- the run as JSON; adopted and marked are counted here.
CREATE TABLE sqlwriter.adoption (
    id int NOT NULL,
    phase varchar(10) COLLATE Latin1_General_BIN2 NOT NULL,
    run_id varchar(36) COLLATE Latin1_General_BIN2 NOT NULL,
    watermark bigint NOT NULL,
    counts nvarchar(max) NOT NULL,
    adopted bigint NOT NULL,
    marked bigint NOT NULL,
    who nvarchar(256) NOT NULL,
    started_at datetime2(3) NOT NULL,
    finished_at datetime2(3) NULL,
    CONSTRAINT pk_adoption PRIMARY KEY (id),
    CONSTRAINT ck_adoption_one CHECK (id = 1),
    CONSTRAINT ck_adoption_phase CHECK (phase IN ('running', 'done', 'empty'))
);
