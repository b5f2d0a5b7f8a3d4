package breaker

// Heartbeat is what the control document says of the database's heartbeat row; without number and id it says nothing.
type Heartbeat struct {
	// SysName is the environment whose row it is.
	SysName string `json:"sys_name,omitempty"`
	// DatabaseID is the id that the row was made with: lower-case text. Another id is another database.
	DatabaseID string `json:"database_id,omitempty"`
	// Number is raised by each heartbeat, never lowered: a lower one is a database that went back.
	Number int64 `json:"number,omitempty"`
}

// Codes of the refusals (infrastructure) of a database that is not the one that was written to last. Nothing was written.
const (
	// CodeWentBack: the row's number is lower than the one that is known.
	CodeWentBack = "database_went_back"
	// CodeOtherDatabase: the row has another id, or is not there.
	CodeOtherDatabase = "other_database"
)

// known is what requests compare the database's row with.
func (b *Breaker) known() Heartbeat { return Heartbeat{SysName: b.o.SysName} }
