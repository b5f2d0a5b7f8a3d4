package funchost

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/stretchr/testify/require"
)

// batchMessage is a message as our workers get it, with every property that has a form of its own on the wire.
func batchMessage(body string) *azservicebus.ReceivedMessage {
	enqueued := time.Date(2026, 3, 4, 5, 6, 7, 890_000_000, time.UTC)
	return &azservicebus.ReceivedMessage{
		Body: []byte(body), MessageID: "job:1:0", DeliveryCount: 3, SequenceNumber: to.Ptr(int64(9007199254740993)),
		EnqueuedTime: &enqueued, TimeToLive: to.Ptr(time.Hour), ExpiresAt: to.Ptr(enqueued.Add(time.Hour)),
		LockToken:     [16]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		ContentType:   to.Ptr("application/json"),
		Subject:       to.Ptr("batch"),
		CorrelationID: to.Ptr(`a"b`),
		ApplicationProperties: map[string]any{
			"text": "ü", "whole": int64(1 << 60), "small": int32(-1), "fraction": 1.5,
			"double": 2.0, "float": float32(0.1),
			"yes": true, "at": enqueued, "bytes": []byte{1, 2}, "none": nil,
		},
	}
}

// The whole request, letter by letter (docs/facts.md F10, F11).
func TestEnvelopeOfAServiceBusMessage(t *testing.T) {
	p, err := serviceBusPayload(batchMessage(`{"batch_id":7}`), time.UTC)
	require.NoError(t, err)
	body := string(envelope(&function{name: "BatchWorker", trigger: "message"}, "id", p, nil, time.Now()))
	const properties = `{"at":"2026-03-04T05:06:07.89Z","bytes":"AQI=","double":2.0,"float":0.1,"fraction":1.5,"none":null,"small":-1,"text":"ü","whole":1152921504606846976,"yes":true}`
	want := `{"Data":{"message":"\"{\\\"batch_id\\\":7}\""},"Metadata":{` +
		`"MessageReceiver":{},"MessageSession":{},"MessageActions":{},"SessionActions":{},"ReceiveActions":{},"Client":{"IsClosed":false,"TransportType":0},` +
		`"DeliveryCount":"3","LockToken":"\"00010203-0405-0607-0809-0a0b0c0d0e0f\"",` +
		`"ExpiresAtUtc":"2026-03-04T06:06:07","ExpiresAt":"2026-03-04T06:06:07+00:00","EnqueuedTimeUtc":"2026-03-04T05:06:07","EnqueuedTime":"2026-03-04T05:06:07+00:00",` +
		`"MessageId":"\"job:1:0\"","ContentType":"\"application/json\"","SequenceNumber":"9007199254740993","Subject":"\"batch\"","Label":"\"batch\"","CorrelationId":"\"a\\\"b\"",` +
		`"ApplicationProperties":` + properties + `,"UserProperties":` + properties + `,` +
		`"batch_id":"\"7\"",` +
		`"sys":{"MethodName":"BatchWorker"`
	require.True(t, strings.HasPrefix(body, want), "got  %s\nwant %s", body, want)
	require.True(t, json.Valid([]byte(body)))
}

func metadataOf(t *testing.T, message *azservicebus.ReceivedMessage, zone *time.Location) map[string]string {
	t.Helper()
	p, err := serviceBusPayload(message, zone)
	require.NoError(t, err)
	out := map[string]string{}
	for _, m := range p.metadata {
		require.NotContains(t, out, m.name)
		out[m.name] = string(m.value)
	}
	return out
}

func TestAServiceBusMessageOfTheDeadLetterQueue(t *testing.T) {
	m := batchMessage("x")
	m.DeadLetterSource = to.Ptr("batches")
	m.ApplicationProperties = map[string]any{
		"DeadLetterReason": "MaxDeliveryCountExceeded", "DeadLetterErrorDescription": "ten times",
	}
	got := metadataOf(t, m, time.UTC)
	require.Equal(t, `"\"batches\""`, got["DeadLetterSource"])
	require.Equal(t, `{"DeadLetterErrorDescription":"ten times","DeadLetterReason":"MaxDeliveryCountExceeded"}`,
		got["ApplicationProperties"])
	require.Equal(t, got["ApplicationProperties"], got["UserProperties"])
}

func TestAServiceBusMessageWithoutATimeToLiveExpiresAtTheEndOfTime(t *testing.T) {
	m := batchMessage("x")
	m.TimeToLive = to.Ptr(time.Duration(0)) // what the client makes of an absent one, with ExpiresAt = EnqueuedTime
	m.ExpiresAt = m.EnqueuedTime
	got := metadataOf(t, m, time.UTC)
	require.Equal(t, `"9999-12-31T23:59:59+00:00"`, got["ExpiresAt"])
	require.Equal(t, `"9999-12-31T23:59:59"`, got["ExpiresAtUtc"])
}

// A body's own properties hide what the host knows of the message: the reason why our messages say batch_id.
func TestTheBodyOfAServiceBusMessageOverwritesItsMetadata(t *testing.T) {
	zone := time.FixedZone("", -6*3600)
	got := metadataOf(t, batchMessage(`{
		"deliveryCount": 5, "MESSAGEID": "mine", "sequencenumber": 1.50,
		"Sys": {"at":"2025-12-17T10:30:01.10Z","n":[1.0]},
		"list": [1], "nothing": null, "yes": true, "no": false, "whole": 2.0, "big": 12345678901234567890, "minus": -0,
		"utc": "2025-12-17T10:30:01.123Z", "offset": "2025-12-17T10:30:01+00:00", "local": "2025-12-17T10:30:01",
		"day": "2025-12-17",
		"lastTrigger": "x", "Subject": null, "Label": [], "twice": 1, "TWICE": 2, "quoted \"": "\u00fc\n"
	}`), zone)
	for name, want := range map[string]string{
		"DeliveryCount": `"\"5\""`, "MessageId": `"\"mine\""`, "SequenceNumber": `"\"1.5\""`,
		"sys": `{"at":"2025-12-17T10:30:01.1Z","n":[1.0]}`,
		"yes": `"\"True\""`, "no": `"\"False\""`, "whole": `"\"2\""`,
		"big": `"\"12345678901234567890\""`, "minus": `"\"0\""`,
		"utc": `"\"12/17/2025 10:30:01\""`, "offset": `"\"12/17/2025 04:30:01\""`, "local": `"\"12/17/2025 10:30:01\""`,
		"day":     `"\"2025-12-17\""`,
		"Subject": `"\"batch\""`, "Label": `"\"batch\""`, "twice": `"\"2\""`, `quoted "`: `"\"ü\\n\""`,
	} {
		require.Equal(t, want, got[name], name)
	}
	for _, gone := range []string{"list", "nothing", "lastTrigger", "TWICE", "Sys", "deliveryCount", "MESSAGEID"} {
		require.NotContains(t, got, gone)
	}
}

func TestABodyMayHideTheHostsOwnMembers(t *testing.T) {
	read := func(retry *retryContext) map[string]any {
		p, err := serviceBusPayload(batchMessage(`{"sys":"mine","RetryContext":"mine"}`), time.UTC)
		require.NoError(t, err)
		text := envelope(&function{name: "F", trigger: "message"}, "id", p, retry, time.Now())
		require.Equal(t, 1, strings.Count(string(text), `"sys":`))
		require.Equal(t, 1, strings.Count(string(text), `"RetryContext":`))
		var body struct{ Metadata map[string]any }
		require.NoError(t, json.Unmarshal(text, &body))
		return body.Metadata
	}
	require.Equal(t, `"mine"`, read(nil)["sys"])
	require.Equal(t, `"mine"`, read(nil)["RetryContext"])
	require.IsType(t, map[string]any{}, read(&retryContext{max: 1})["RetryContext"], "the host sets it last")
}
