package funchost

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const everyFive = `{"bindings":[{"type":"timerTrigger","name":"timer","schedule":"0 */5 * * * *"}]}`

// memoryTimers keeps status in memory.
type memoryTimers struct {
	mu    sync.Mutex
	by    map[string]scheduleStatus
	saved int
	fail  error
}

func (m *memoryTimers) load(_ context.Context, name string) (*scheduleStatus, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, there := m.by[name]
	if !there {
		return nil, nil //nolint:nilnil // as the port says
	}
	return &s, nil
}

func (m *memoryTimers) save(_ context.Context, name string, s scheduleStatus) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.by[name] = s
	m.saved++
	return m.fail
}

func (m *memoryTimers) get(name string) scheduleStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.by[name]
}

func (m *memoryTimers) uses() func(*Host, *Options) {
	return func(h *Host, _ *Options) {
		if h != nil {
			h.timerStatus = func() (timerStore, error) { return m, nil }
		}
	}
}

func newMemoryTimers() *memoryTimers { return &memoryTimers{by: map[string]scheduleStatus{}} }

func timerPayload(t *testing.T, c call) string {
	t.Helper()
	var body struct {
		Data struct{ Timer json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(c.Body, &body))
	return string(body.Data.Timer)
}

func at(hour, minute, second int) time.Time {
	return time.Date(2026, 3, 4, hour, minute, second, 0, time.UTC)
}

func TestTimerTicksAndItsPayload(t *testing.T) {
	timers := newMemoryTimers()
	b := start(t, newRoot(t).function("F", everyFive), timers.uses()) // 05:06:07.8
	require.Equal(t, []time.Duration{at(5, 10, 0).Sub(b.clock.Now())}, b.clock.wait(t, waitTimer, 1))
	require.Equal(t, at(5, 10, 0), timers.get("F").Next,
		"a new timer's next tick is stored at once, so that it can be missed")
	b.clock.advance(at(5, 10, 0).Sub(b.clock.Now()))
	require.Equal(t,
		`{"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00+00:00","Next":"2026-03-04T05:10:00+00:00","LastUpdated":"0001-01-01T00:00:00+00:00"},"IsPastDue":false}`,
		timerPayload(t, b.control.wait(t, 1)[0]))
	require.Equal(t, map[string]struct{}{"sys": {}}, keysOf(b.control.seen()[0].metadata(t)))
	require.Equal(t, []time.Duration{5 * time.Minute}, b.clock.wait(t, waitTimer, 1))
	require.Equal(t, scheduleStatus{at(5, 10, 0), at(5, 15, 0), at(5, 10, 0)}, timers.get("F"))
	b.clock.advance(5 * time.Minute)
	require.Contains(t, timerPayload(t, b.control.wait(t, 2)[1]),
		`"Last":"2026-03-04T05:10:00+00:00","Next":"2026-03-04T05:15:00+00:00"`)
}

func TestTimerWhoseScheduleWasChangedIsNotPastDue(t *testing.T) {
	timers := newMemoryTimers()
	timers.by["F"] = scheduleStatus{at(3, 0, 0), at(4, 0, 0), at(3, 0, 0)} // hourly until now
	b := start(t, newRoot(t).function("F", everyFive), timers.uses())
	b.clock.wait(t, waitTimer, 1)
	require.Empty(t, b.control.seen())
	require.Equal(t, at(5, 10, 0), timers.get("F").Next)
	require.True(t, timers.get("F").Last.IsZero())
}

func TestTimerDoesNotOverlapAndCatchesUp(t *testing.T) {
	c := newControl(t)
	release := make(chan struct{})
	c.say(func(context.Context, int, call) answer { <-release; return ok })
	b := prepare(t,
		newRoot(t).function("F", everyFive).file("host.json", strings.Replace(hostFile, "00:05:00", "-1", 1)), c,
		newFakeClock(), newMemoryTimers().uses())
	b.run()
	b.clock.wait(t, waitTimer, 1)
	b.clock.advance(5 * time.Minute) // 05:11:07.8
	c.wait(t, 1)
	b.clock.advance(6 * time.Minute) // 05:17: 05:15 has passed meanwhile
	require.Len(t, c.seen(), 1)
	close(release)
	c.wait(t, 2) // the tick that fell into the run, at once
	require.Equal(t, time.Duration(0), b.awaitN(TimerScheduled, 2).Delay)
	b.clock.wait(t, waitTimer, 1)
	require.Len(t, c.seen(), 2)
}

func TestTimerGoesOnAfterAFailure(t *testing.T) {
	timers := newMemoryTimers()
	timers.fail = errors.New("storage is away")
	c := newControl(t)
	c.inOrder(failure(500), ok)
	b := prepare(t, newRoot(t).function("F", everyFive), c, newFakeClock(), timers.uses())
	b.run()
	for range 2 {
		b.clock.wait(t, waitTimer, 1)
		b.clock.advance(5 * time.Minute)
	}
	b.await(InvocationSuccess)
	b.await(TimerStatusFailed)
}

func TestTimerWithoutMonitor(t *testing.T) {
	for name, text := range map[string]string{
		"useMonitor false":         strings.Replace(everyFive, `"name"`, `"useMonitor":false,"name"`, 1),
		"in the host's settings":   strings.Replace(everyFive, "0 */5 * * * *", "%OFTEN%", 1),
		"seconds listed by commas": strings.Replace(everyFive, "0 */5 * * * *", "0,20,40 * * * * *", 1),
	} {
		t.Run(name, func(t *testing.T) {
			timers := newMemoryTimers()
			b := start(t, newRoot(t).function("F", text), timers.uses(),
				with(func(o *Options) { o.Settings["OFTEN"] = "*/15 * * * * *" }))
			b.clock.wait(t, waitTimer, 1)
			b.clock.advance(5 * time.Minute)
			require.Contains(t, timerPayload(t, b.control.wait(t, 1)[0]), `"ScheduleStatus":null`)
			require.Zero(t, timers.saved)
		})
	}
}

func TestTimerThatCannotReachItsStorageDoesNotStart(t *testing.T) {
	b := start(t, newRoot(t).function("F", everyFive),
		with(func(o *Options) { o.Settings["AzureWebJobsStorage"] = "secret nonsense" }))
	e := b.await(ListenerFailed)
	require.ErrorContains(t, e.Err, "AzureWebJobsStorage is not a storage connection string")
	require.NotContains(t, e.Err.Error(), "secret")
}

func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		text string
		from time.Time
		want time.Time
	}{
		{"0 */5 * * * *", at(5, 6, 7), at(5, 10, 0)},
		{"*/5 * * * * *", at(5, 6, 7), at(5, 6, 10)},
		{"0 0 2 * * *", at(5, 6, 7), time.Date(2026, 3, 5, 2, 0, 0, 0, time.UTC)},
		{"0 0 0 * * Mon", at(5, 6, 7), time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)},
		{"0 0 0 13 * 5", at(5, 6, 7), time.Date(2026, 3, 13, 0, 0, 0, 0, time.UTC)}, // Friday the 13th: both must match
		{"0 0 0 14 * 5", at(5, 6, 7), time.Date(2026, 8, 14, 0, 0, 0, 0, time.UTC)},
	} {
		s, err := parseSchedule(c.text)
		require.NoError(t, err, c.text)
		got, err := s.next(c.from)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	never, err := parseSchedule("0 0 0 31 2 *")
	if err == nil {
		_, err = never.next(at(0, 0, 0))
	}
	require.Error(t, err)
}

func TestTimerStatusIsABlob(t *testing.T) {
	blobs := map[string]string{} // by path; a request at a time
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, there := blobs[r.URL.Path]
		switch {
		case r.Method == http.MethodPut && there && r.URL.Query().Has("restype"):
			w.Header().Set("x-ms-error-code", "ContainerAlreadyExists")
			w.WriteHeader(http.StatusConflict)
		case r.Method == http.MethodPut:
			body, _ := io.ReadAll(r.Body)
			blobs[r.URL.Path] = string(body)
			w.WriteHeader(http.StatusCreated)
		case !there:
			w.Header().Set("x-ms-error-code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = io.WriteString(w, text)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	store, err := openTimerStore(map[string]string{
		"AzureWebJobsStorage": "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=a2V5;BlobEndpoint=" + server.URL + "/a;",
	}, "my-host")
	require.NoError(t, err)
	status, err := store.load(t.Context(), "F")
	require.NoError(t, err)
	require.Nil(t, status)
	want := scheduleStatus{Last: at(1, 2, 3), Next: at(4, 5, 6)}
	for range 2 { // the second time the container exists
		require.NoError(t, store.save(t.Context(), "F", want))
	}
	require.Equal(t,
		`{"Last":"2026-03-04T01:02:03+00:00","Next":"2026-03-04T04:05:06+00:00","LastUpdated":"0001-01-01T00:00:00+00:00"}`,
		blobs["/a/azure-webjobs-hosts/timers/my-host/Host.Functions.F/status"])
	status, err = store.load(t.Context(), "F")
	require.NoError(t, err)
	require.True(t, want.Next.Equal(status.Next))
	require.True(t, status.LastUpdated.IsZero())
}
