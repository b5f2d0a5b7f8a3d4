package shared

// The reasons of an outcome that a sink refuses to believe (docs/requirements.md R50, R51).
const (
	ReasonNoEvidence = "the ledger shows neither this write, nor this content, nor anything newer"
	ReasonRowCount   = "another number of rows was written than lines were applied"
)
