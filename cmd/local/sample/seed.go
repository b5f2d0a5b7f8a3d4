package sample

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// SeedLines makes the detail rows that lines need, as the scanner leaves them: some text, a manufacturer that is a guess,
// no result. Every seventh line also has a tracking row, from a result of long ago, so that both ways of an upsert happen.
// Rows that exist stay as they are. db is the SQLite file of the sample schema; it answers how many rows it made.
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
		r, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO IVCE_DTL (IVCE_DTL_UID, IVCE_NUM, ITM_LDSC, CLN_MFR_AI_NM, IVCE_LNE_STAT, WEB_SRCH_URL)
			VALUES (?, ?, ?, 'UNKNOWN', 'NEW', 'https://scan.example/')`, line, fmt.Sprintf("INV-%05d", line%100_000), fmt.Sprintf("AS SCANNED %d", line))
		if err != nil {
			return 0, err
		}
		n, err := r.RowsAffected()
		if err != nil {
			return 0, err
		}
		made += n
		if n == 1 && line%7 == 0 {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO IVCE_TRKG_MSTR (IVCE_DTL_UID, CLN_MFR_AI_NM, IVCE_LNE_STAT, DUP_IND)
				VALUES (?, 'A RESULT OF LONG AGO', 'DS1', 'Y')`, line); err != nil {
				return 0, err
			}
		}
	}
	return made, tx.Commit()
}
