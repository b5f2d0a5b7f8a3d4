package reconcile

import (
	"slices"

	"sqlwriter/internal/fault"
)

// CheckPurge refuses an unknown part and a limit outside of 1 to MaxPurge: internal, codes "part" and "limit".
func CheckPurge(op string, part Part, limit int) error {
	if !slices.Contains(Parts(), part) {
		return fault.New(fault.Internal, op, "part", "expected one of %v, found %q", Parts(), part)
	}
	if limit < 1 || limit > MaxPurge {
		return fault.New(fault.Internal, op, "limit", "expected 1 to %d rows, found %d", MaxPurge, limit)
	}
	return nil
}

// CodeRetentionDays is the code of a purge for fewer days than LeastRetention.
const CodeRetentionDays = "retention_days"

// CheckDays refuses fewer days than LeastRetention, for an engine that has no procedure that does: internal, code CodeRetentionDays.
func CheckDays(op string, days int) error {
	if days < LeastRetention {
		return fault.New(fault.Internal, op, CodeRetentionDays, "expected at least %d days, found %d", LeastRetention, days)
	}
	return nil
}
