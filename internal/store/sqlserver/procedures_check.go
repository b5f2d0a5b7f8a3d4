package sqlserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/invoice"
)

// inspectProcedures checks that this build's procedures exist and that this login may execute them.
func (s *Store) inspectProcedures(ctx context.Context, f *Findings) error {
	state, err := s.ProcedureState(ctx)
	if err != nil {
		return err
	}
	if len(state.Missing) > 0 {
		f.differ("%s", state.Describe())
		return nil
	}
	for _, p := range s.procedures.list {
		name := p.qualified(s.procedures.hash)
		has, err := s.hasRight(ctx, name, "EXECUTE")
		if err != nil {
			return classifyDependency(opCheck, err)
		}
		if !has {
			f.differ("%s: expected the right EXECUTE, found none (fix: deploy/sql/app_rights.sql)", name)
		}
		var quoted sql.NullInt64
		err = s.db.QueryRowContext(ctx, `SELECT OBJECTPROPERTY(OBJECT_ID(@name), N'ExecIsQuotedIdentOn')`,
			sql.Named("name", name)).Scan(&quoted)
		if err != nil {
			return classifyDependency(opCheck, err)
		}
		if quoted.Valid && quoted.Int64 == 0 {
			f.differ(
				"%s: expected that it was created with QUOTED_IDENTIFIER ON, found OFF (fix: DROP PROCEDURE %s, then sqlwriterctl migrate up)", name, name)
		}
	}
	f.Differences = append(f.Differences, state.Owners...)
	return nil
}

// Describe tells an operator which procedures the build calls and which the database has.
func (p ProcedureState) Describe() string {
	text := "procedures " + p.Hash + " of this build"
	switch {
	case len(p.Missing) == 0:
		return text + ": installed"
	case !p.At.IsZero():
		return text + ": installed, but this login does not see " + strings.Join(p.Missing, ", ") +
			" (fix: deploy/sql/app_rights.sql; if they were dropped, sqlwriterctl migrate up)"
	case p.Latest != "" && len(p.Differs) == 0:
		text += ": not installed; the database has " + p.Latest + ", with the columns in another order"
	case p.Latest != "":
		text += ": not installed; the database has " + p.Latest + ", which differs in: " + strings.Join(p.Differs, ", ")
	default:
		text += ": not installed"
	}
	return text + " (fix: sqlwriterctl migrate up)"
}

// owners compares the owner of our procedures with the owners of the tables, and returns the differences. A procedure
// may use only tables of its own owner without rights of the caller.
func (s *Store) owners(ctx context.Context) ([]string, error) {
	apply := s.procedures.name(procApply)
	owner, err := s.owner(ctx, apply)
	if err != nil || owner == "" {
		return nil, err
	}
	var differences []string
	for _, name := range []string{
		s.procedures.name(procPreview), ledgerTable, s.tables.table(invoice.Detail), s.tables.table(invoice.Tracking),
	} {
		other, err := s.owner(ctx, name)
		if err != nil {
			return nil, err
		}
		if errorText := ownerDifference(apply, owner, name, other); errorText != "" {
			differences = append(differences, errorText)
		}
	}
	return differences, nil
}

// ownerDifference describes a procedure and a table with different owners. It is empty if the owners are equal or
// unknown.
func ownerDifference(procedure, owner, name, other string) string {
	if owner == "" || other == "" || strings.EqualFold(other, owner) {
		return ""
	}
	return fmt.Sprintf(
		"%s: expected the owner of %s, %s, found %s: the procedure has no right to it (fix: ALTER AUTHORIZATION ON SCHEMA::sqlwriter TO %s, "+
			"and the same for sqlwriter_preview, where %s is to own both tables; then deploy/sql/app_rights.sql again: it loses its grants by that)",
		name, procedure, owner, other, quote(other), quote(other))
}

// owner is the owner of a table or procedure. It is empty on other servers than Microsoft's, which have no ownership
// chains.
func (s *Store) owner(ctx context.Context, name string) (string, error) {
	var owner sql.NullString
	err := s.db.QueryRowContext(ctx,
		`SELECT CASE WHEN @@VERSION LIKE N'Microsoft%' THEN USER_NAME(OBJECTPROPERTY(OBJECT_ID(@name), N'OwnerId')) END`, sql.Named("name", name)).Scan(&owner)
	return owner.String, err
}

// tryPreview runs the preview on an empty request. Each statement then requires its rights and finds no row. An empty
// write would fire the user's triggers; deploy/sql/check_rights.sql runs one on demand.
func (s *Store) tryPreview(ctx context.Context, f *Findings) error {
	err := s.sendRequest(ctx, &answer{mode: commit.Preview}, breaker.Heartbeat{})
	errorText, err := brokenOwnershipChain(err)
	if errorText != "" {
		f.differ("%s", errorText)
	}
	return err
}

// brokenOwnershipChain describes a missing right inside the procedure. It returns any other error as other.
func brokenOwnershipChain(err error) (difference string, other error) {
	e := fault.As(classify(opCheck, err))
	if e == nil || (e.Code != "229" && e.Code != "230") {
		return "", classifyDependency(opCheck, err)
	}
	return fmt.Sprintf(
		"an empty preview: expected that the procedure may read what it names, found error %s: %s (fix: one owner for the schemas sqlwriter, "+
			"sqlwriter_preview and that of the tables, then deploy/sql/app_rights.sql and check_rights.sql)",
		e.Code, serverText(err)), nil
}

// inspectPreview checks that the one procedure exists that a shadow calls.
func (s *Store) inspectPreview(ctx context.Context, f *Findings) error {
	name := s.procedures.name(procPreview)
	var there sql.NullInt64
	if err := s.db.QueryRowContext(ctx, `SELECT OBJECT_ID(@name, N'P')`,
		sql.Named("name", name)).Scan(&there); err != nil {
		return classifyDependency(opCheck, err)
	}
	if !there.Valid {
		f.differ(
			"%s: expected a procedure that this login may execute, found none (fix: sqlwriterctl migrate up, then deploy/sql/shadow_rights.sql)", name)
	}
	return nil
}

// serverText is the server's message. For a missing right it names the object and its schema.
func serverText(err error) string {
	var e mssql.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "no text"
}
