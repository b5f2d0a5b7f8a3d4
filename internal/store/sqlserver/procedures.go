package sqlserver

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/invoice"
	"sqlwriter/internal/store/shared"
)

// The schemas of our procedures. A login with rights on previewSchema alone can read verdicts and write nothing.
const (
	ownSchema     = "sqlwriter"
	previewSchema = "sqlwriter_preview"
)

// The procedures of a build, without the hash that ends their names.
const (
	procApply       = "apply"
	procRewriteRead = "rewrite_read"
	procRewrite     = "rewrite"
	procHeartbeat   = "heartbeat"
	procAdopt       = "adopt_page"
	procPreview     = "preview"
	procPurge       = "purge"
	procStarted     = "started"

	procReconcileScan  = shared.ReconcileScan
	procReconcileLines = shared.ReconcileLines
)

// procedure is a stored procedure of this build. All procedures of a set have the set's hash in their names.
type procedure struct {
	schema, name, parameters string
	steps                    []step
}

// qualified is the name by which the procedure is called.
func (p procedure) qualified(hash string) string { return p.schema + "." + p.name + "_" + hash }

// body is the procedure's text with comments, which help a reader on the server. The steps between transaction.sql
// and commit.sql are indented.
func (p procedure) body() string {
	var b strings.Builder
	indent := "    "
	for _, s := range p.steps {
		fmt.Fprintf(&b, "%s-- %s\n", indent, s.name)
		if s.name == "commit" {
			indent = "    "
		}
		for line := range strings.Lines(s.text) {
			if strings.TrimSpace(line) != "" {
				line = indent + line
			}
			b.WriteString(line)
		}
		if s.name == "transaction" {
			indent = "        "
		}
	}
	return b.String()
}

// text is the statement that creates the procedure.
func (p procedure) text(hash string) string {
	return "-- Made by sqlwriterctl migrate up, one set for each build and settings file (sqlwriter.procedure_set).\n" +
		"CREATE PROCEDURE " + p.qualified(hash) + "\n    " + strings.ReplaceAll(p.parameters, ", ", ",\n    ") +
		"\nAS\nBEGIN\n" + p.body() + "END;\n"
}

// procedures is the set that this build calls. It depends on the build and the settings file only, never on the
// database. So all instances of a build with one settings file call the same set.
type procedures struct {
	// hash is the hash of the whole set.
	hash string
	list []procedure
	// inputs lists everything that the set depends on, one line each.
	inputs []string
}

// name is the name by which a procedure is called.
func (p procedures) name(of string) string {
	for _, one := range p.list {
		if one.name == of {
			return one.qualified(p.hash)
		}
	}
	panic("sqlserver: no procedure " + of) // the names are constants of this package
}

// procedures renders the set of a deployment with its inputs.
func (t tables) procedures() (procedures, error) {
	made, err := t.renderProcedures()
	if err != nil {
		return procedures{}, err
	}
	plain := tables{schema: defaultSchema, lockTimeout: defaultLockTimeout}
	build, err := plain.renderProcedures()
	if err != nil {
		return procedures{}, err
	}
	made.inputs = t.inputs(build.hash)
	return made, nil
}

func (t tables) renderProcedures() (procedures, error) {
	var made procedures
	const request = "@request nvarchar(max), @hashes varbinary(max), @expected int, @marks int, @twice bit, @sys_name nvarchar(256)"
	const write = ", @database_id varchar(36), @number bigint, @one_writer bit"
	for _, p := range []struct {
		procedure
		ledger string
		names  []string
	}{
		{
			procedure{
				schema: ownSchema, name: procApply, parameters: request + write,
			}, ledgerTable, applySteps(),
		},
		{
			procedure{
				schema: ownSchema, name: procRewriteRead,
				parameters: "@request nvarchar(max), @hashes varbinary(max), @expected int, @releases nvarchar(max)",
			}, ledgerTable, rewriteReadSteps(),
		},
		{
			procedure{
				schema: ownSchema, name: procRewrite,
				parameters: request + write + ", @releases nvarchar(max)",
			}, ledgerTable, applySteps(),
		},
		{
			procedure{
				schema: ownSchema, name: procHeartbeat,
				parameters: "@sys_name nvarchar(256), @database_id varchar(36), " +
					"@number bigint, @take_over bit",
			}, ledgerTable, heartbeatSteps(),
		},
		{
			procedure{
				schema: ownSchema, name: procReconcileScan,
				parameters: "@after bigint, @limit int, @sys_name nvarchar(256), @days int",
			}, ledgerTable, reconcileSteps(procReconcileScan),
		},
		{
			procedure{schema: ownSchema, name: procReconcileLines, parameters: "@lines nvarchar(max), @days int"},
			ledgerTable,
			reconcileSteps(procReconcileLines),
		},
		{
			procedure{
				schema: ownSchema, name: procPurge,
				parameters: "@part varchar(20), @days int, @limit int, @sys_name nvarchar(256)",
			}, ledgerTable, purgeSteps(),
		},
		{
			procedure{schema: ownSchema, name: procStarted, parameters: "@set varchar(12)"},
			ledgerTable,
			[]string{"begin", procStarted},
		},
		{procedure{schema: previewSchema, name: procPreview, parameters: request}, ledgerCopy, previewSteps()},
	} {
		var err error
		if p.steps, err = t.render(p.ledger, p.name == procRewrite, p.names); err != nil {
			return procedures{}, err
		}
		made.list = append(made.list, p.procedure)
	}
	made.list = append(made.list,
		procedure{
			schema: ownSchema, name: procAdopt,
			parameters: "@rows nvarchar(max), @hashes varbinary(max), @run varchar(36), " +
				"@from bigint, @advance bit, @to bigint, @counts nvarchar(max)", steps: []step{adoptionStep("page")},
		})
	return made.hashed(t.mapping.Version()), nil
}

// hashed adds the hash of the texts, which are made without it, and of the mapping's version: so no build writes rows
// by a mapping that no migration chose.
func (p procedures) hashed(mapping int) procedures {
	sum := sha256.New()
	sum.Write([]byte(strconv.Itoa(mapping)))
	for _, one := range p.list {
		sum.Write([]byte(one.text("")))
	}
	p.hash = hex.EncodeToString(sum.Sum(nil))[:hashLength]
	return p
}

// hashLength is the length of the hash in a name. It tells a few builds apart, and a person can compare it.
const hashLength = 12

// inputs lists what the set depends on: the build, as the hash of its set for the default names, and the settings.
func (t tables) inputs(build string) []string {
	list := []string{
		"build " + build, "mapping " + strconv.Itoa(t.mapping.Version()), "schema " + t.schema,
		"lock timeout " + t.lockTimeout.String(),
		"key " + string(invoice.Detail) + "." + t.mapping.Key(invoice.Detail),
		"key " + string(invoice.Tracking) + "." + t.mapping.Key(invoice.Tracking),
	}
	for _, c := range t.mapping.Columns() {
		kind, err := columnType(c)
		if err != nil {
			kind = string(c.Kind)
		}
		list = append(list, fmt.Sprintf("column %s %s from %s", label(c), kind, c.From()))
	}
	return list
}

// ProcedureState compares the procedures of this build with those of a database.
type ProcedureState struct {
	// Hash is the hash of this build. Missing are the procedures that the database does not have or that this login
	// may not execute.
	Hash    string   `json:"hash"`
	Missing []string `json:"missing,omitempty"`
	// At is when the set was installed; zero if it was not.
	At time.Time `json:"at,omitzero"`
	// Latest is the hash of the set that was installed last, if it is another one. Differs lists the differences;
	// lines with "only here" are this build's.
	Latest  string   `json:"latest,omitempty"`
	Differs []string `json:"differs,omitempty"`
	// Owners lists tables and procedures with different owners, each with its fix.
	Owners []string `json:"owners,omitempty"`
}

// ProcedureState compares this build's procedures with the database's. Errors by kind: see classify.
func (s *Store) ProcedureState(ctx context.Context) (ProcedureState, error) {
	state := ProcedureState{Hash: s.procedures.hash}
	for _, p := range s.procedures.list {
		name := p.qualified(s.procedures.hash)
		var there sql.NullInt64
		if err := s.db.QueryRowContext(ctx, `SELECT OBJECT_ID(@name, N'P')`,
			sql.Named("name", name)).Scan(&there); err != nil {
			return ProcedureState{}, classifyDependency(opMigrate, err)
		}
		if !there.Valid {
			state.Missing = append(state.Missing, name)
		}
	}
	err := s.installed(ctx, &state)
	if err == nil && len(state.Missing) == 0 {
		state.Owners, err = s.owners(ctx)
	}
	return state, classifyDependency(opMigrate, err)
}

// installed reads the record of installed sets.
func (s *Store) installed(ctx context.Context, state *ProcedureState) error {
	var there sql.NullInt64
	if err := s.db.QueryRowContext(ctx,
		`SELECT OBJECT_ID(N'sqlwriter.procedure_set', N'U')`).Scan(&there); err != nil || !there.Valid {
		return err
	}
	var inputs string
	err := s.db.QueryRowContext(ctx, `SELECT s.installed_at FROM sqlwriter.procedure_set AS s WHERE s.set_hash = @hash`,
		sql.Named("hash", mssql.VarChar(state.Hash))).Scan(&state.At)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	err = s.db.QueryRowContext(ctx,
		`SELECT TOP (1) s.set_hash, s.inputs FROM sqlwriter.procedure_set AS s ORDER BY s.installed_at DESC`).
		Scan(&state.Latest, &inputs)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	state.Differs = lineDifferences(s.procedures.inputs, strings.Split(inputs, "\n"))
	return err
}

// lineDifferences lists the lines that only one of two lists has.
func lineDifferences(here, there []string) []string {
	var list []string
	for _, l := range here {
		if !slices.Contains(there, l) {
			list = append(list, "only here: "+l)
		}
	}
	for _, l := range there {
		if !slices.Contains(here, l) {
			list = append(list, "only there: "+l)
		}
	}
	return list
}

// install creates the missing procedures. It keeps those of other builds, because a stopped slot may need them (Prune).
func (p procedures) install(ctx context.Context, tx *sql.Tx) error {
	for _, one := range p.list {
		var there sql.NullInt64
		if err := tx.QueryRowContext(ctx, `SELECT OBJECT_ID(@name, N'P')`,
			sql.Named("name", one.qualified(p.hash))).Scan(&there); err != nil {
			return fmt.Errorf("procedure %s: %w", one.name, err)
		}
		if there.Valid {
			continue
		}
		if _, err := tx.ExecContext(ctx, one.text(p.hash)); err != nil {
			return fmt.Errorf("procedure %s: %w", one.name, err)
		}
	}
	_, err := tx.ExecContext(ctx, recordProcedures, sql.Named("hash", mssql.VarChar(p.hash)),
		sql.Named("inputs", strings.Join(p.inputs, "\n")))
	return err
}

// markStarted records that a build started with the set today.
func (s *Store) markStarted(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, s.procedures.name(procStarted), sql.Named("set", mssql.VarChar(s.procedures.hash)))
	return classifyDependency(opCheck, err)
}

// recordProcedures adds a set to the record of installed sets.
const recordProcedures = `INSERT INTO sqlwriter.procedure_set (set_hash, inputs)
SELECT @hash, @inputs
WHERE NOT EXISTS (SELECT 1 FROM sqlwriter.procedure_set AS s WHERE s.set_hash = @hash);`
