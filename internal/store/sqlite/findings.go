package sqlite

import "sqlwriter/internal/store/shared"

func findingTables() shared.FindingTables {
	return shared.FindingTables{Finding: "sqlwriter_finding", Comparison: "sqlwriter_comparison", Adoption: "sqlwriter_adoption"}
}

// Findings returns the findings of an environment. Codes are those of AuditLog.
func (s *Store) Findings(sysName string) *shared.Findings {
	return shared.NewFindings(s.runEngine(sysName), findingTables())
}
