package sqlserver

import "sqlwriter/internal/store/shared"

func findingTables() shared.FindingTables {
	return shared.FindingTables{Finding: "sqlwriter.finding", Comparison: "sqlwriter.comparison", Adoption: "sqlwriter.adoption"}
}

// Findings returns the findings of an environment. Codes are those of classify.
func (s *Store) Findings(sysName string) *shared.Findings {
	return shared.NewFindings(s.runEngine(sysName), findingTables())
}
