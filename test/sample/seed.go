package sample

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SeedLines inserts the detail rows of lines as the scanner does: a text, a guessed manufacturer, no result. Every
// seventh line also gets a tracking row of an earlier result, so that the upsert both inserts and updates. Existing
// rows stay as they are. db has the sample schema, in SQLite or on SQL Server. made is the number of inserted detail
// rows.
func SeedLines(ctx context.Context, db *sql.DB, lines []int64) (made int64, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("sample: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("sample: %w", err), tx.Rollback())
		}
	}()
	for _, line := range lines {
		r, err := tx.ExecContext(ctx,
			`INSERT INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC, CLN_MFR_AI_NM, IVCE_LNE_STAT, WEB_SRCH_URL)
			SELECT @line, @invoice, @text, 'UNKNOWN', 'NEW', 'https://scan.example/'
			WHERE NOT EXISTS (SELECT 1 FROM IVCE_DTL WHERE IVCE_DTL_UID = @line)`,
			sql.Named("line", line), sql.Named("invoice", fmt.Sprintf("INV-%05d", line%100_000)),
			sql.Named("text", fmt.Sprintf("AS SCANNED %d", line)))
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		made += n
		if n == 1 && line%7 == 0 {
			if _, err := tx.ExecContext(ctx,
				`INSERT INTO IVCE_TRKG_MSTR (IVCE_DTL_UID, CLN_MFR_AI_NM, IVCE_LNE_STAT, DUP_IND)
				SELECT @line, 'A RESULT OF LONG AGO', 'DS1', 'Y'
				WHERE NOT EXISTS (SELECT 1 FROM IVCE_TRKG_MSTR WHERE IVCE_DTL_UID = @line)`, sql.Named("line", line)); err != nil {
				return 0, err
			}
		}
	}
	return made, tx.Commit()
}
