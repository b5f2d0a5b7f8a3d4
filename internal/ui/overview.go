package ui

import (
	"sqlwriter/internal/ops"
	"sqlwriter/internal/opsapi"
)

// overview is what the page of the same name shows.
type overview struct {
	Status ops.Status
}

// overview shows the state of everything.
func (v *visit) overview() (content, error) {
	status, err := do(v, opsapi.StatusGet, opsapi.None{})
	if err != nil {
		return content{}, err
	}
	return content{Title: "Overview", Command: "sqlwriterctl status", Main: overview{status}, Live: true}, nil
}
