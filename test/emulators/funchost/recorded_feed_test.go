package funchost

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recordedFeed is a line of cosmos.jsonl.
type recordedFeed struct {
	recordedFunction
	FirstID    string `json:"first_id"`
	RetryCount int    `json:"retry_count"`
	AsPut      string `json:"document_as_put"`
}

// recordedFunction is a line of timer.jsonl.
type recordedFunction struct {
	Function string
	Headers  [][2]string
	Body     string
}

func (r recordedFunction) post() recordedPost {
	return recordedPost{"/" + r.Function, r.Headers, r.Body}
}

// stored is the document as the service has it: as it was put, with the service's own members behind it.
func (r recordedFeed) stored(t *testing.T) string {
	t.Helper()
	text := call{Body: []byte(r.Body)}.documents(t)
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if r.AsPut == "" {
		return text
	}
	return strings.TrimSuffix(strings.TrimSpace(r.AsPut), "}") + text[strings.Index(text, `,"_rid":`):]
}

func TestRecordedChangeFeed(t *testing.T) {
	cases := readRecorded[recordedFeed](t, "cosmos.jsonl", 12)
	own, err := os.ReadFile("../../../functions/CommitResults/function.json")
	require.NoError(t, err)
	store := newFakeCosmos(1)
	b := start(t, newRoot(t).function("CommitResults", string(own)), store.uses(), with(func(o *Options) {
		for name, value := range map[string]string{
			"COSMOS_DATABASE": "db", "COSMOS_CONTAINER": "docs", "LEASE_CONTAINER": "leases", "LEASE_PREFIX": "p-",
			"COSMOS_CONNECTION": o.Settings["COSMOS"],
		} {
			o.Settings[name] = value
		}
	}))
	id := ""
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s attempt %d", c.FirstID, c.RetryCount), func(t *testing.T) {
			say := ok
			if c.FirstID == "fail1" {
				say = failure(500)
			}
			b.control.inOrder(say)
			if c.RetryCount == 0 {
				b.clock.wait(t, waitFeedPoll, 1) // the batch before is done with
				store.put(0, c.stored(t))
				b.clock.advance(time.Second)
			} else {
				b.clock.wait(t, waitRetry, 1)
				b.clock.advance(10 * time.Second)
			}
			got := b.control.wait(t, i+1)[i]
			postedAs(t, c.post(), got)
			now := got.Header.Get("X-Azure-Functions-InvocationId")
			require.Equal(t, c.RetryCount > 0, now == id, "one id for all attempts, and another for each batch")
			id = now
		})
	}
}

// Each timer is put where the recorded one stood: its schedule, its stored status and the time.
func TestRecordedTimer(t *testing.T) {
	const (
		tick   = iota // the clock reaches it
		missed        // while the host was down
		byHand        // with the input "hello", where the recorded post has it
	)
	stood := []struct {
		how      int
		schedule string
	}{
		{tick, "0 */5 * * * *"},
		{tick, "*/15 * * * * *"},
		{tick, "*/15 * * * * *"},
		{missed, "0 * * * * *"},
		{tick, "0 * * * * *"},
		{missed, "0 * * * * *"},
		{byHand, "0 0 12 * * *"},
		{byHand, "0 0 12 * * *"},
	}
	for i, c := range readRecorded[recordedFunction](t, "timer.jsonl", len(stood)) {
		t.Run(fmt.Sprintf("%d %s", i+1, c.Function), func(t *testing.T) {
			var body struct {
				Data struct {
					Timer struct{ ScheduleStatus scheduleStatus }
				}
				Metadata struct {
					Timer        string
					Sys          struct{ UtcNow time.Time }
					RetryContext *struct{ MaxRetryCount int }
				}
			}
			require.NoError(t, json.Unmarshal([]byte(c.Body), &body))
			retry := ""
			if r := body.Metadata.RetryContext; r != nil {
				retry = fmt.Sprintf(
					`,"retry":{"strategy":"fixedDelay","maxRetryCount":%d,"delayInterval":"00:00:10"}`, r.MaxRetryCount)
			}
			timers, clock := newMemoryTimers(), newFakeClock()
			clock.now = body.Metadata.Sys.UtcNow
			if stood[i].how == tick {
				clock.now = clock.now.Add(-4 * time.Second)
			} else {
				timers.by[c.Function] = body.Data.Timer.ScheduleStatus
			}
			r := newRoot(t).function(c.Function,
				fmt.Sprintf(`{"bindings":[{"type":"timerTrigger","name":"timer","schedule":%q}]%s}`,
					stood[i].schedule, retry))
			b := prepare(t, r, newControl(t), clock, timers.uses(), with(masterKey))
			b.run()
			switch stood[i].how {
			case tick:
				clock.wait(t, waitTimer, 1)
				clock.advance(15 * time.Second)
			case byHand:
				input, err := json.Marshal(map[string]string{"input": strings.Trim(body.Metadata.Timer, `"`)})
				require.NoError(t, err)
				code, _, _ := b.request("POST", "/admin/functions/"+c.Function,
					strings.NewReader(string(input)), "x-functions-key", "m")
				require.Equal(t, 202, code)
			}
			postedAs(t, c.post(), b.control.wait(t, 1)[0])
		})
	}
}
