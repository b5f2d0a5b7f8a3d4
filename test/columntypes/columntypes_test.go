package columntypes_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/columntypes"
)

const script = `CREATE TABLE s.batch (
    batch_id varchar(64) COLLATE Latin1_General_BIN2 NOT NULL,
    document_key binary(32) NOT NULL,
    number int NOT NULL,
    CONSTRAINT pk_batch PRIMARY KEY (batch_id)
);`

// Each plant is found, and only the plants.
func TestTwoTypesOfOnePairAreFound(t *testing.T) {
	types := map[string]string{"id": "varchar", "text": "nvarchar(64)", "key": "varbinary(32)", "n": "bigint"}
	for text, want := range map[string][]string{
		"SELECT 1 FROM s.batch AS b WHERE b.batch_id = @id AND b.number > @n": nil,
		"SELECT 1 FROM s.batch AS b WHERE b.batch_id = @text": {
			"b.batch_id is varchar, @text is nvarchar",
		},
		"UPDATE s.batch SET number = @n WHERE batch_id = @text": {
			"batch_id is varchar, @text is nvarchar",
		},
		"DELETE FROM [s].[batch] WHERE document_key = CAST(@key AS binary(32))": nil,
		"DELETE FROM s.batch WHERE document_key > @key": {
			"document_key is binary, @key is varbinary",
		},
		"INSERT INTO s.batch (batch_id, number) VALUES (@text, @n);": {
			"batch_id is varchar, @text is nvarchar",
		},
		"INSERT INTO s.batch (batch_id, number) VALUES (NULLIF(@text, ''), @n);": {
			"batch_id is varchar, NULLIF(@text, '') is nvarchar",
		},
		"SELECT 1 FROM OPENJSON (@rows) WITH (\n    listed_id char(64) '$[0]'\n    ) AS n\nCROSS JOIN s.batch AS b WHERE b.batch_id = n.listed_id COLLATE Latin1_General_BIN2": {"b.batch_id is varchar, n.listed_id is char"},
		"SELECT CAST(@text AS varchar(9)) AS batch_id INTO #line FROM x; SELECT 1 FROM #line AS l INNER JOIN s.batch AS b ON b.document_key = l.batch_id":                      {"b.document_key is binary, l.batch_id is varchar"},
	} {
		pairs, differ := columntypes.Of(script).Check(text, func(name string) string { return types[name] })
		require.NotZero(t, pairs, text)
		require.Equal(t, want, differ, text)
	}
}

func TestParametersOfAProcedure(t *testing.T) {
	of := columntypes.Declared(
		"CREATE PROCEDURE s.p\n    @run varchar(36),\n    @limit int\nAS\nBEGIN\n    DECLARE @before datetime2(3), @rows int = 0;\n")
	require.Equal(t, []string{"varchar(36)", "int", "datetime2(3)", "int", ""},
		[]string{of("run"), of("limit"), of("before"), of("rows"), of("other")})
}
