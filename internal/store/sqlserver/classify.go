package sqlserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strconv"

	mssql "github.com/microsoft/go-mssqldb"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/fault"
	"sqlwriter/internal/retention"
	"sqlwriter/internal/store/shared"
)

// rule is one row of the table of errors.
type rule struct {
	numbers   []int32
	kind      fault.Kind
	condition fault.Condition
	// reason explains the number to an operator; source is the origin of the row.
	reason, source string
	// code replaces the number as the error's code, if it is set.
	code string
}

// codeOf is Error.Code of one of a row's numbers.
func (r rule) codeOf(number int32) string {
	if r.code != "" {
		return r.code
	}
	return strconv.Itoa(int(number))
}

const (
	facts        = "docs/facts.md F77"
	requirements = "docs/requirements.md R32"
	ours         = "ours"
	// vendor is Microsoft's list of numbers, severities and texts ("Database Engine events and errors").
	vendor = "Database Engine events and errors"
)

// rules is the table of errors by the server's number. For a number without a row the severity decides (ruleOf). It
// includes numbers that SqlClient on Windows makes up (-2, 64, 121, 233, 10053 ...), so that docs/errors.md explains
// them. The Go driver never reports those.
func rules() []rule {
	const (
		infra, slow, full = fault.Infrastructure, fault.Throttled, fault.Quota
		race, own         = fault.Contention, fault.OwnWhenAlone
	)
	return []rule{
		{
			numbers: []int32{916, 18456},
			kind:    infra, source: facts,
			reason: "the login was refused: a wrong password, or an identity that is no user of this database",
		},
		{
			numbers: []int32{40615}, kind: infra, source: facts,
			reason: "the server's firewall does not know this machine's address",
		},
		{
			numbers: []int32{33134, 33159}, kind: infra, source: vendor,
			reason: "no user can be made for the identity: only a Microsoft Entra user may make one",
		},
		{
			numbers: []int32{18401, 18450, 18451, 18452, 18459, 18461, 18470, 18486, 18487, 18488},
			kind:    infra, source: facts,
			reason: "the login was refused",
		},
		{
			numbers: []int32{
				911, 952, 4060, 4064, 40531, 40532, 40607, 40852, 40914, 42101, 47072, 47073, 33154, 33155,
			},
			kind: infra, source: facts,
			reason: "the database cannot be opened with this login",
		},
		{
			numbers: []int32{229, 230, 262, 297, 300, 13538}, kind: infra,
			reason: "a right is missing: see deploy/sql/app_rights.sql", source: facts,
		},
		{
			numbers: []int32{2760, 4613, 15151, 15247}, kind: infra, source: vendor,
			reason: "what it names does not exist, or a right to it is missing",
		},
		{
			numbers: []int32{207, 208, 213, 2812, 4121, 15350}, kind: infra,
			reason: "a table, column or procedure does not exist", source: facts,
		},
		{
			numbers: []int32{
				102, 137, 156, 195, 209, 319, 451, 457, 468, 4104, 4145, 8116, 8117, 8120, 13607, 13608, 13609,
			},
			kind: infra, source: vendor,
			reason: "the server refuses the request's text, which is the same for every document",
		},
		{
			numbers: []int32{119, 201, 214, 349, 8144, 8145, 8146, 8162, 8178, 8179, 8180},
			kind:    infra, source: vendor,
			reason: "the server refuses the request's parameters, which are the same for every document: another build's procedure, perhaps",
		},
		{
			numbers: []int32{206, 257, 260, 271, 273, 544, 1934, 8101, 8102, 13536, 13537, 13559, 13561},
			kind:    infra, source: vendor,
			reason: "a column or table of the user's is of another type or kind: nothing can be written to it",
		},
		{
			numbers: []int32{8607, 8653, 8655, 13576},
			kind:    infra, source: vendor,
			reason: "a table of the user's cannot be written to: offline, disabled, or read-only",
		},
		{
			numbers: []int32{3906, 3908, 3924}, kind: infra,
			reason: "the database is read-only: a failover, or a replica", source: facts,
		},
		{
			numbers: []int32{976, 978, 979, 981, 982, 983, 988}, kind: infra,
			reason: "this replica does not take connections: a failover", source: facts,
		},
		{
			numbers: []int32{3947, 3948, 3949, 35250}, kind: infra,
			reason: "the replicas change places or do not reach each other", source: vendor,
		},
		{
			numbers: []int32{615, 904, 913, 921, 922, 923, 924, 926, 927, 942, 945, 946, 4221, 5063, 9001},
			kind:    infra, source: facts,
			reason: "the database is not available",
		},
		{
			numbers: []int32{40020, 40143, 40166, 40197, 40540, 40613, 40627, 40648, 42108, 42109},
			kind:    infra, source: facts,
			reason: "Azure SQL is moving or resuming the database",
		},
		{
			numbers: []int32{596, 6002, 6005, 10922, 10930, 17142, 17187, 17188, 17197, 17809, 17830},
			kind:    infra, source: facts,
			reason: "the server is shutting down or ended the session",
		},
		{
			numbers: []int32{0, -2, 20, 64, 121, 233, 258, 997, 10053, 10054, 10060, 11001},
			kind:    infra, source: facts,
			reason: "the connection broke or timed out",
		},
		{
			numbers: []int32{701, 802, 1204, 8628, 8645, 8651, 8657, 17803},
			kind:    infra, source: facts,
			reason: "the server is out of memory, locks or working disks",
		},
		{
			numbers: []int32{3985, 3986, 8642, 8649},
			kind:    infra, source: vendor,
			reason: "the server is out of memory, threads or what its administrator allows",
		},
		{
			numbers: []int32{3950, 3958, 3959, 3966, 3967, 3999}, kind: infra,
			reason: "tempdb has no room left for row versions", source: vendor,
		},
		{
			numbers: []int32{605, 823, 824, 825, 3624}, kind: infra,
			reason: "a page on the server's disk is damaged, perhaps under one row only", source: facts,
		},
		{
			numbers: []int32{211, 427, 1203, 3301, 3302, 3313, 3314, 3315, 3316, 8646},
			kind:    infra, source: vendor,
			reason: "the log, an index or a lock of the server's is damaged, perhaps under one row only",
		},
		{
			numbers: []int32{8601, 8618, 8619, 8621, 8622, 8623, 8624, 8630, 8631, 8632},
			kind:    infra, source: vendor,
			reason: "the server finds no plan for the request or cannot run it, perhaps because of one document's size",
		},
		{
			numbers: []int32{10928, 10929, 10936, 40501, 40549, 40550, 40551, 40552, 40553, 49918, 49919, 49920},
			kind:    slow, source: facts,
			reason: "the server limits the load",
		},
		{
			numbers: []int32{1101, 1105, 1132, 9002, 40544, 41823, 41840}, kind: full,
			reason: "a disk, the log or the quota is full", source: facts,
		},
		{numbers: []int32{1205}, kind: race, reason: "chosen as the victim of a deadlock", source: requirements},
		{
			numbers: []int32{1222}, kind: race,
			reason: "another session held a lock for longer than LOCK_TIMEOUT", source: requirements,
		},
		{
			numbers: []int32{2801, 3960, 3961, 13535, 41301, 41302, 41305, 41325, 41839},
			kind:    race, source: requirements,
			reason: "another session changed the row at the same time",
		},
		{
			numbers: []int32{4117, 4184, 8608}, kind: race,
			reason: "another session changed a table or an index at the same time", source: vendor,
		},
		{
			numbers: []int32{2601, 2627}, kind: race, condition: own,
			reason: "a row with this key appeared in between", source: requirements,
		},
		{
			numbers: []int32{throwNoEvidence},
			kind:    race, source: ours, code: "verdict_without_evidence",
			reason: shared.ReasonNoEvidence,
		},
		{
			numbers: []int32{throwRowCount},
			kind:    race, condition: own, source: ours, code: "row_count",
			reason: shared.ReasonRowCount,
		},
		{
			numbers: []int32{throwEdited}, kind: race, reason: "somebody edited a line after the rewrite had read it",
			source: ours, code: "edited_meanwhile",
		},
		{
			numbers: []int32{throwWentBack},
			kind:    infra, source: ours, code: breaker.CodeWentBack,
			reason: "the database went back: its heartbeat is behind the control document",
		},
		{
			numbers: []int32{throwOtherDatabase},
			kind:    infra, source: ours, code: breaker.CodeOtherDatabase,
			reason: "another database: its heartbeat is not the one that the control document knows",
		},
		{
			numbers: []int32{throwWaits},
			kind:    infra, condition: fault.Waits, source: "ADR 0057", code: "one_writer",
			reason: "waiting: another instance writes (ONE_WRITER)",
		},
		{
			numbers: []int32{throwLockCall},
			kind:    infra, source: "ADR 0057", code: "one_writer_call",
			reason: "the lock call of ONE_WRITER is wrong",
		},
		{
			numbers: []int32{throwRetention},
			kind:    fault.Internal, source: ours, code: retention.CodeDays,
			reason: fmt.Sprintf("a purge keeps at least %d days", retention.LeastDays),
		},
		{
			numbers: []int32{throwMoved}, kind: race, condition: fault.Changed, reason: shared.MovedReason,
			source: ours, code: shared.CodeMoved,
		},
		{
			numbers: []int32{2628, 8152}, kind: fault.Document,
			reason: "a text is longer than the user's column", source: requirements,
		},
		{
			numbers: []int32{547}, kind: fault.Document,
			reason: "a constraint of the user's refuses the row", source: requirements,
		},
		{
			numbers: []int32{515}, kind: fault.Document,
			reason: "the user's column does not take NULL", source: requirements,
		},
		{
			numbers: []int32{220, 232, 241, 242, 244, 245, 248, 8114, 8115},
			kind:    fault.Document, source: requirements,
			reason: "a value does not fit the user's column",
		},
		{
			numbers: []int32{3609, 3616, 3930, 50000}, kind: fault.Document,
			reason: "a trigger of the user's refused the row", source: requirements,
		},
	}
}

// secondary reports numbers that only follow another error.
func secondary(number int32) bool {
	return number == 3621 || number == 3609 || number == 266 || number == 3998
}

// Codes of errors without a number.
const (
	codeConnection  = "connection"
	codeCertificate = "certificate"
	codeTimeout     = "timeout"
	codeCancelled   = "cancelled"
)

// The reasons of errors without a number. Faults has the same.
const (
	reasonTimeout     = "no answer in time: the request may have been carried out"
	reasonCancelled   = "the caller gave up: the request may have been carried out"
	reasonCertificate = "the server's certificate is not trusted: replace it, or name its host by hostNameInCertificate"
	reasonConnection  = "the connection could not be made or broke: the request may have been carried out"
)

// classify makes a *fault.Error of a driver's error. It returns a *fault.Error unchanged. It decides by number or
// type, never by text.
func classify(op string, err error) error {
	if err == nil || fault.As(err) != nil {
		return err
	}
	var server mssql.Error
	switch {
	// The context comes first, because the error of a cancelled request may include the server's confirmation.
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Infrastructure, op, codeTimeout,
			reasonTimeout, err)
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Infrastructure, op, codeCancelled,
			reasonCancelled, err)
	case errors.As(err, &server):
		return byNumber(op, server, err)
	case isCertificateError(err):
		return fault.Wrap(fault.Infrastructure, op, codeCertificate,
			reasonCertificate, err)
	}
	// An error without a server's number belongs to the connection. The driver keeps the cause of some only as text,
	// so they cannot be told apart. A document cannot cause one, because its content is sent as one string.
	return fault.Wrap(fault.Infrastructure, op, codeConnection,
		reasonConnection, err)
}

// classifyDependency classifies an error of a request that concerns no document: connecting, checking, migrating,
// adopting. A document's error becomes infrastructure and keeps its number. Internal errors stay internal.
func classifyDependency(op string, err error) error {
	err = classify(op, err)
	e := fault.As(err)
	if e == nil || fault.IsDependency(err) || e.Kind == fault.Contention || e.Kind == fault.Internal {
		return err
	}
	lifted := *e
	lifted.Kind, lifted.Condition = fault.Infrastructure, fault.NoCondition
	return &lifted
}

// byNumber chooses the error of one answer with the widest scope, and the first among equals.
func byNumber(op string, server mssql.Error, err error) error {
	all := server.All
	if len(all) == 0 {
		all = []mssql.Error{server}
	}
	var best *fault.Error
	for _, e := range all {
		if secondary(e.Number) && len(all) > 1 {
			continue
		}
		found := ruleOf(e)
		candidate := &fault.Error{
			Kind: found.kind, Condition: found.condition, Code: found.codeOf(e.Number), Op: op,
			Reason: found.reason, Err: err,
		}
		if best == nil || scopeRank(candidate.Scope()) > scopeRank(best.Scope()) {
			best = candidate
		}
	}
	if best == nil { // all errors are secondary
		found := ruleOf(server)
		return &fault.Error{
			Kind: found.kind, Condition: found.condition, Code: found.codeOf(server.Number), Op: op,
			Reason: found.reason, Err: err,
		}
	}
	return best
}

// severityOfServer is the lowest severity of errors that the request did not cause: 17 is out of resources, 18 an
// internal error. Errors of 19 and more end the request or the connection ("Database Engine error severities").
const severityOfServer = 17

// ruleOf returns the row of an error's number, or the row for its severity.
func ruleOf(e mssql.Error) rule {
	for _, r := range rules() {
		if slices.Contains(r.numbers, e.Number) {
			return r
		}
	}
	if e.Class >= severityOfServer {
		return rule{kind: fault.Infrastructure, reason: severeReason, source: requirements}
	}
	return rule{kind: fault.Document, reason: otherReason, source: requirements}
}

// scopeRank orders scopes from the narrowest to the widest.
func scopeRank(s fault.Scope) int {
	switch s {
	case fault.ScopeDependency:
		return 2
	case fault.ScopeAttempt:
		return 1
	case fault.ScopeDocument:
		return 0
	}
	return 0
}

// isCertificateError reports an error about the server's certificate. The driver keeps its type with encrypt=strict
// only; otherwise it is text inside a connection error.
func isCertificateError(err error) bool {
	return hasType[*tls.CertificateVerificationError](err) || hasType[x509.UnknownAuthorityError](err) ||
		hasType[x509.HostnameError](err) || hasType[x509.CertificateInvalidError](err)
}

// hasType reports whether the chain has an error of type E.
func hasType[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
