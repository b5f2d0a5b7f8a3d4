package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/stretchr/testify/require"

	"sqlwriter/internal/ops"
	"sqlwriter/test/emulators/azurite"
	"sqlwriter/test/sample"
)

// Two doctors at once look at an app that drains documents, and some are killed while they wait. Rows and documents are
// as without them, the rows of the whole deployment are ok, and nothing is left.
func TestDoctorsBesideADrain(t *testing.T) {
	docs := sample.Generate(sample.Options{Seed: 41, Count: 2000, Clean: true})
	s := newStack(t, sample.Lines(docs)...)
	s.blobs, s.recover = azurite.Start(t).ConnectionString(), "* * * * * *"
	s.withBus(usualLock)
	s.submitMany(docs)
	s.startHost()
	s.handler.waitReady()
	status, _ := s.ops(http.MethodPost, "doctor", "{}", readerKey)
	require.Equal(t, http.StatusForbidden, status)

	drained, stop := context.WithCancel(t.Context())
	var doctors sync.WaitGroup
	asked := make([]int, 2)
	for i := range asked {
		doctors.Go(func() {
			for ; drained.Err() == nil; asked[i]++ {
				s.askAndLeave(time.Duration(asked[i]%20) * 10 * time.Millisecond)
			}
		})
	}
	s.waitUntilQuiet(len(docs))
	stop()
	doctors.Wait()
	t.Logf("%v doctors beside %d documents", asked, len(docs))
	require.Greater(t, asked[0]+asked[1], 2)
	s.requireExact(docs)

	require.Eventually(t, func() bool {
		_, answer := s.ops(http.MethodPost, "doctor", "{}", functionKey)
		wrong := 0
		for _, r := range answer["rows"].([]any) {
			row := r.(map[string]any)
			if row["state"] != ops.RowOK {
				t.Log(row)
				wrong++
			}
		}
		return wrong == 0 && len(answer["rows"].([]any)) == 7
	}, patience, time.Second)
	control, err := s.cosmos.Client.NewContainer(database, "sqlwriter-control")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // who was left goes on to its end
		left := 0
		pager := control.NewQueryItemsPager("SELECT c.id FROM c WHERE STARTSWITH(c.id, 'doctor:')",
			azcosmos.NewPartitionKey(), nil)
		for pager.More() {
			page, err := pager.NextPage(t.Context())
			require.NoError(t, err)
			left += len(page.Items)
		}
		return left == 0
	}, patience, 100*time.Millisecond)
}

// askAndLeave calls doctor and goes away after a time; 0 means that it waits for the answer.
func (s *stack) askAndLeave(after time.Duration) {
	ctx := s.t.Context()
	if after > 0 {
		within, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		ctx = within
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.host.Address()+"/api/ops/v1/doctor",
		strings.NewReader("{}"))
	if err != nil {
		s.t.Error(err)
		return
	}
	request.Header.Set("x-functions-key", functionKey)
	request.Header.Set("Content-Type", "application/json")
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close()
	}
}
