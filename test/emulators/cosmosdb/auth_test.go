package cosmosdb_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sqlwriter/test/emulators/cosmosdb"
	"sqlwriter/test/emulators/cosmosdb/cosmosdbtest"
)

func TestAuthDateAndSignatureAreChecked(t *testing.T) {
	run := cosmosdbtest.Start(t)
	run.Container(t, "db", "logs", "/id")
	get := rest{method: "GET", path: "/dbs/db", resourceType: "dbs", link: "dbs/db"}
	for name, tc := range map[string]struct {
		change func(*rest)
		want   int
	}{
		"as it should be":         {func(*rest) {}, 200},
		"date 14 minutes ago":     {func(r *rest) { r.date = time.Now().Add(-14 * time.Minute) }, 200},
		"date 16 minutes ago":     {func(r *rest) { r.date = time.Now().Add(-16 * time.Minute) }, 403},
		"date 16 minutes ahead":   {func(r *rest) { r.date = time.Now().Add(16 * time.Minute) }, 403},
		"signed for another link": {func(r *rest) { r.link = "dbs/other" }, 401},
		"signed for another type": {func(r *rest) { r.resourceType = "docs" }, 401},
		"no authorization":        {func(r *rest) { r.unsigned = true }, 401},
		"no such token type": {func(r *rest) {
			r.headers = map[string]string{"Authorization": "type%3Dresource%26ver%3D1.0%26sig%3Dx"}
		}, 401},
		"an Entra token, not asked": {func(r *rest) {
			r.headers = map[string]string{"Authorization": "type%3Daad%26ver%3D1.0%26sig%3Dx"}
		}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := get
			tc.change(&r)
			got, _, _ := r.do(t, run)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestAuthBearerOnlyWhenOptionsSaySo(t *testing.T) {
	run := cosmosdbtest.Start(t, func(o *cosmosdb.Options) { o.AcceptBearer = true })
	got, _, _ := rest{
		method: "GET", path: "/dbs", resourceType: "dbs",
		headers: map[string]string{"Authorization": "type%3Daad%26ver%3D1.0%26sig%3Dtoken"},
	}.do(t, run)
	require.Equal(t, http.StatusOK, got)
}
