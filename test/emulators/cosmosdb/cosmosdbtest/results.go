package cosmosdbtest

import (
	"testing"

	"sqlwriter/test/emulators/cosmosdb/provision"
)

// Results makes a container of results.
func (r *Running) Results(t testing.TB, database, id string) provision.Documents {
	t.Helper()
	return provision.Documents{ContainerClient: r.Container(t, database, id, provision.ResultsKey)}
}
