package run_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sqlwriter/internal/fault"
	"sqlwriter/internal/run"
)

const batchID = "5f0c2f4d8a6b4d1e9c3a7b2e1f0d4c6b8a9e7d5c3b1a0f2e4d6c8b0a9f8e7d6c"

func runPayload() run.Payload {
	return run.Payload{
		Version: 1, Kind: run.RunMessage, SysName: "web", RunID: "20260101-0001", Epoch: 3, Deferral: 2,
		FirstDeferredAt: 1767225600,
	}
}

func batchPayload() run.Payload {
	return run.Payload{
		Version: 1, Kind: run.BatchMessage, SysName: "web", RunID: "20260101-0001", BatchID: batchID, BatchAttempt: 1,
		Epoch: 4, Deferral: 2, FirstDeferredAt: 1767225600,
	}
}

// Other builds read these bodies.
func TestMessagesAsTheyAreSent(t *testing.T) {
	for name, p := range map[string]run.Payload{"run": runPayload(), "batch": batchPayload()} {
		want, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(t, err)
		m := p.Outgoing(90 * time.Second)
		require.Equal(t, strings.TrimSpace(string(want)), string(m.Body))
		require.Equal(t, 90*time.Second, m.Delay)
		require.LessOrEqual(t, len(m.ID), 128)
		got, err := run.ReadPayload(want, p.Kind)
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	require.Equal(t, "20260101-0001:3:2", runPayload().Outgoing(0).ID)
	require.Equal(t, batchID+":1:4:2", batchPayload().Outgoing(0).ID)
}

// wrappings are those of portals, hosts and other queues.
func wrappings() map[string]func([]byte) []byte {
	literal := func(b []byte) []byte {
		raw, err := json.Marshal(string(b))
		if err != nil {
			panic(err)
		}
		return raw
	}
	std := func(b []byte) []byte { return []byte(base64.StdEncoding.EncodeToString(b)) }
	return map[string]func([]byte) []byte{
		"plain":              func(b []byte) []byte { return b },
		"blanks":             func(b []byte) []byte { return []byte("\r\n " + string(b) + "\n") },
		"BOM":                func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		"base64":             std,
		"base64, no pad":     func(b []byte) []byte { return []byte(base64.RawStdEncoding.EncodeToString(b)) },
		"JSON string":        literal,
		"string of base64":   func(b []byte) []byte { return literal(std(b)) },
		"base64 of string":   func(b []byte) []byte { return std(literal(b)) },
		"string of string":   func(b []byte) []byte { return literal(literal(b)) },
		"string and BOM":     func(b []byte) []byte { return literal(append([]byte("\ufeff"), b...)) },
		"base64 with BOM":    func(b []byte) []byte { return std(append([]byte("\ufeff"), b...)) },
		"string^2 of base64": func(b []byte) []byte { return literal(literal(std(b))) },
	}
}

func TestAPayloadSurvivesAnyAcceptedWrapping(t *testing.T) {
	hex := rapid.StringMatching(`[0-9a-f]{64}`)
	rapid.Check(t, func(t *rapid.T) {
		p := run.Payload{
			Version: 1, Kind: rapid.SampledFrom([]run.MessageKind{run.RunMessage, run.BatchMessage}).Draw(t, "kind"),
			SysName:         rapid.StringN(1, 20, 60).Draw(t, "sys_name"),
			RunID:           rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "run_id"),
			Deferral:        rapid.IntRange(0, 1<<30).Draw(t, "deferral"),
			FirstDeferredAt: rapid.Int64Range(0, 1<<40).Draw(t, "first"),
		}
		if p.Kind == run.BatchMessage {
			p.BatchID, p.BatchAttempt = hex.Draw(t, "batch_id"), rapid.IntRange(0, 1<<20).Draw(t, "attempt")
		} else {
			p.Epoch = rapid.IntRange(0, 1<<20).Draw(t, "epoch")
		}
		m := p.Outgoing(0)
		require.LessOrEqual(t, len(m.ID), 128)
		for name, wrap := range wrappings() {
			got, err := run.ReadPayload(wrap(m.Body), p.Kind)
			require.NoError(t, err, name)
			require.Equal(t, p, got, name)
		}
	})
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	body := `{"later":{"a":[1]},"message_version":1,"message_kind":"run","sys_name":"web","run_id":"r","DeliveryCount":7}`
	p, err := run.ReadPayload([]byte(body), run.RunMessage)
	require.NoError(t, err)
	require.Equal(t, run.Payload{Version: 1, Kind: run.RunMessage, SysName: "web", RunID: "r"}, p)
}

func TestAnInvalidPayloadIsRefusedWithTheReason(t *testing.T) {
	with := func(member, value string) string {
		m := map[string]json.RawMessage{}
		if err := json.Unmarshal(batchPayload().Outgoing(0).Body, &m); err != nil {
			panic(err)
		}
		if m[member] = json.RawMessage(value); value == "" {
			delete(m, member)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	layers := string(batchPayload().Outgoing(0).Body)
	for range 5 {
		raw, err := json.Marshal(layers)
		require.NoError(t, err)
		layers = string(raw)
	}
	secret := "c29tZWJvZHkncyBzZWNyZXQ"
	for _, c := range []struct{ body, code, reason string }{
		{"", "not_json", "found nothing"},
		{" \n", "not_json", "found nothing"},
		{`""`, "not_json", "found nothing"},
		{"{", "not_json", "begin like one"},
		{`{"a":1} {"b":2}`, "not_json", "begin like one"},
		{`"never ends`, "not_json", "does not end"},
		{"[1,2]", "not_json", "a JSON array"},
		{"17", "not_json", "a JSON value that is not an object"},
		{"null", "not_json", "a JSON value that is not an object"},
		{"true", "not_json", "a JSON value that is not an object"},
		{"hello, world", "not_json", "a text of 12 bytes that is not JSON"},
		{"\xff\xfe{", "not_json", "3 bytes that are not text"},
		{secret, "not_json", "a text of"},
		{layers, "not_json", "more than 4 layers"},
		{strings.Repeat(" ", run.MaxBody+1), "too_large", "at most 65536 bytes, found 65537"},
		{with("message_version", ""), "version", "found none"},
		{with("message_version", `"1"`), "version", "found none"},
		{with("message_version", "0"), "version", "found 0"},
		{with("message_version", "2"), "version", "expected 1 to 1, found 2"},
		{with("message_kind", `"run"`), "kind", `expected "batch", found "run"`},
		{with("message_kind", ""), "kind", `found ""`},
		{with("message_kind", `"`+strings.Repeat("k", 500)+`"`), "kind", "found"},
		{with("sys_name", ""), "member", "sys_name"},
		{with("sys_name", "5"), "member", "sys_name: expected a string, found a number"},
		{with("run_id", ""), "member", "run_id"},
		{with("run_id", `"a b"`), "member", "run_id"},
		{with("run_id", `"`+strings.Repeat("r", 65)+`"`), "member", "found 65 bytes"},
		{with("batch_id", ""), "member", "batch_id"},
		{with("batch_id", `"`+strings.ToUpper(batchID)+`"`), "member", "batch_id"},
		{with("batch_attempt", "-1"), "member", "batch_attempt"},
		{with("batch_attempt", `"x"`), "member", "batch_attempt"},
		{with("deferral", "-1"), "member", "deferral"},
		{with("first_deferred_at", "1.5"), "member", "first_deferred_at: expected a int64, found a number"},
		{with("deferral", strings.Repeat("7", 3000)), "member", "deferral: expected a int, found a number"},
	} {
		t.Run(fmt.Sprintf("%.40q", c.body), func(t *testing.T) {
			p, err := run.ReadPayload([]byte(c.body), run.BatchMessage)
			require.Error(t, err)
			require.Equal(t, c.code, fault.CodeOf(err))
			require.Equal(t, fault.Document, fault.KindOf(err))
			require.Contains(t, fault.As(err).Reason, c.reason)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "777")
			require.NotContains(t, err.Error(), "1.5")
			require.Less(t, len(err.Error()), 300)
			_ = p
		})
	}
}

// The host copies a body's members over its own, whatever their case (docs/facts.md F11).
func TestNoMemberHasTheNameOfTheTriggersMetadata(t *testing.T) {
	metadata := []string{
		"DeliveryCount", "DeadLetterSource", "LockToken", "ExpiresAt", "ExpiresAtUtc", "EnqueuedTime",
		"EnqueuedTimeUtc", "MessageId", "ContentType",
		"ReplyTo", "SequenceNumber", "To", "Subject", "Label", "CorrelationId", "ApplicationProperties",
		"UserProperties", "SessionId",
		"ReplyToSessionId", "PartitionKey", "TransactionPartitionKey", "MessageReceiver", "MessageSession",
		"MessageActions", "SessionActions",
		"ReceiveActions", "Client", "sys", "RetryContext", "DeliveryCountArray", "MessageIdArray",
	}
	all := runPayload()
	all.BatchID, all.BatchAttempt = batchID, 1
	var members map[string]any
	require.NoError(t, json.Unmarshal(all.Outgoing(0).Body, &members))
	require.Len(t, members, 9, "a new member is looked at here too")
	for member := range members {
		for _, foreign := range metadata {
			require.False(t, strings.EqualFold(member, foreign), member)
			require.False(t, strings.EqualFold(strings.ReplaceAll(member, "_", ""), foreign), member)
		}
	}
}

func TestALaterMessageIsNoDuplicateOfAnEarlierOne(t *testing.T) {
	seen := map[string]bool{}
	for attempt := range 3 {
		for deferral := range 3 {
			p := batchPayload()
			p.BatchAttempt, p.Deferral = attempt, deferral
			require.False(t, seen[p.ID()])
			seen[p.ID()] = true
		}
	}
}
