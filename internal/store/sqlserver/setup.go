package sqlserver

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // the text that makes the user
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	scripts "sqlwriter/deploy/sql"
	"sqlwriter/internal/fault"
)

// SetUp is what a migration makes beside our own schemas; nothing where it is zero.
type SetUp struct {
	// User is the name of the app's user, ClientID the client id of its identity.
	User, ClientID string
	// Lines are the rows of sample tables. Nil makes no such tables.
	Lines []int64
}

//go:embed user.sql
var userText string

var (
	clientID = regexp.MustCompile(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`)
	comments = regexp.MustCompile(`(?m)^--.*\n`)
	grants   = regexp.MustCompile(`(?m)^GRANT (.+?)( ON (\w+)::(.+?))? TO \w+( WITH GRANT OPTION)?;$`)
)

// texts make the user, and give it the rights of deploy/sql/app_rights.sql. Each may run again.
func (u SetUp) texts(t tables) ([]string, error) {
	var id mssql.UniqueIdentifier
	switch {
	case u.User == "":
		return nil, nil
	case !clientID.MatchString(u.ClientID) || id.Scan(u.ClientID) != nil:
		return nil, fault.New(fault.Infrastructure, opMigrate, codeSettings,
			"client id: expected the form 00000000-0000-0000-0000-000000000000, found another one")
	}
	sid, err := id.Value() // the bytes in the order of Guid.ToByteArray
	user := strings.NewReplacer(
		"{{user}}", escapeQuotes(u.User), "{{quoted}}", escapeQuotes(quote(u.User)), "{{client}}", u.ClientID,
		"{{sid}}", fmt.Sprintf("0x%X", sid), "{{number}}", strconv.Itoa(throwOtherUser))
	rights := strings.NewReplacer("sqlwriter_app", quote(u.User), "::dbo.", "::"+quote(t.schema)+".")
	return []string{
		user.Replace(userText), rights.Replace(comments.ReplaceAllLiteralString(scripts.AppRights, "")),
	}, err
}

// SetUp is Migrate, which also makes what u says, in the same transaction. Errors by kind: those of Migrate and of
// shared.NoSample, and infrastructure:
//   - code "other_user": the name is the user of another client id
//   - a number of the server, with the rights of deploy/sql that the login lacks
func (s *Store) SetUp(ctx context.Context, u SetUp) error {
	files, err := migrationList()
	if err != nil {
		return err
	}
	texts, err := u.texts(s.tables)
	if err != nil {
		return err
	}
	return s.saying(ctx, s.migrate(ctx, files, s.procedures, func(tx *sql.Tx) error {
		if u.Lines != nil {
			if err := s.tables.makeSample(ctx, tx, u.Lines); err != nil {
				return err
			}
		}
		for _, text := range texts {
			if _, err := tx.ExecContext(ctx, text); err != nil {
				return fmt.Errorf("user: %w", err)
			}
		}
		return nil
	}), u)
}

// saying says in a set-up's error of the server what it means here.
func (s *Store) saying(ctx context.Context, err error, u SetUp) error {
	var server mssql.Error
	switch {
	case !errors.As(err, &server):
		return err
	case server.Number == throwOtherUser:
		return fault.New(fault.Infrastructure, opMigrate, "other_user", "%s", server.Message)
	case u.User != "":
		err = s.naming(ctx, err, "setup_rights.sql", scripts.SetupRights)
	}
	return s.naming(ctx, err, "migration_rights.sql", scripts.MigrationRights)
}

// hasGrant asks for a right. HAS_PERMS_BY_NAME does not know rights to grant.
const hasGrant = `SELECT
    CASE
        WHEN HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', N'CONTROL') = 1 THEN 1
        WHEN @grants = 0 THEN HAS_PERMS_BY_NAME(COALESCE(NULLIF(@on, N''), DB_NAME()), @class, @right)
        WHEN HAS_PERMS_BY_NAME(@on, @class, N'CONTROL') = 1 THEN 1
        ELSE (
            SELECT COUNT(*) FROM sys.database_permissions AS p
            WHERE
                p.major_id = OBJECT_ID(@on) AND p.permission_name = @right AND p.state = 'W'
                AND p.grantee_principal_id = DATABASE_PRINCIPAL_ID()
        )
    END`

// naming adds to the error of a migration which rights of a script the login lacks.
func (s *Store) naming(ctx context.Context, err error, name, script string) error {
	var lacks []string
	script = strings.ReplaceAll(script, "::dbo.", "::"+quote(s.tables.schema)+".")
	for _, g := range grants.FindAllStringSubmatch(script, -1) {
		for right := range strings.SplitSeq(g[1], ", ") {
			var has sql.NullInt64 // NULL where it does not exist, or may not be seen
			if s.db.QueryRowContext(ctx, hasGrant, sql.Named("right", right), sql.Named("grants", g[5] != ""),
				sql.Named("class", cmp.Or(g[3], "DATABASE")), sql.Named("on", g[4])).Scan(&has) != nil {
				return err // it says more than that nobody could look
			}
			if has.Int64 == 0 {
				lacks = append(lacks, right+g[2]+g[5])
			}
		}
	}
	if len(lacks) == 0 {
		return err
	}
	e := *fault.As(err) // migrate gives no other
	e.Reason = fmt.Sprintf("the login lacks of deploy/sql/%s: %s; %s", name, strings.Join(lacks, ", "), e.Reason)
	return &e
}
