package sqlite

import "sqlwriter/internal/store/shared"

func findingTables() shared.FindingTables {
	return shared.FindingTables{
		Finding: "sqlwriter_finding", Adoption: "sqlwriter_adoption", IndexByState: " INDEXED BY sqlwriter_ix_finding_state",
	}
}

// Findings returns the findings of an environment. Codes are those of AuditLog.
func (s *Store) Findings(sysName string) *shared.Findings {
	return shared.NewFindings(s.runEngine(sysName), findingTables())
}
