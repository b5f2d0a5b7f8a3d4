package funchost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

// serviceBusPayload gives a message the form that serviceBusTrigger gives it (docs/facts.md F10, F11). The error is
// a body that cannot become a string: the real host fails the invocation then, before it calls the handler.
func serviceBusPayload(message *azservicebus.ReceivedMessage, zone *time.Location) (payload, error) {
	text, err := messageText(message)
	if err != nil {
		return payload{}, err
	}
	data := serviceBusBindingData(message)
	data.applyBody(text, zone)
	return payload{data: stringValue(text), metadata: data}, nil
}

// messageText is the body as a string: the bytes as UTF-8, what is no UTF-8 replaced by U+FFFD, or the string of an
// AMQP value body. Source: MessageToStringConverter.cs.
func messageText(message *azservicebus.ReceivedMessage) (string, error) {
	raw := message.RawAMQPMessage
	if raw == nil {
		return string(message.Body), nil
	}
	if text, is := raw.Body.Value.(string); is {
		return text, nil
	}
	if raw.Body.Value != nil {
		return "", fmt.Errorf("a message with a value type of %T cannot be bound to a string", raw.Body.Value)
	}
	if raw.Body.Sequence != nil {
		return "", errSequenceBody
	}
	return string(bytes.Join(raw.Body.Data, nil)), nil
}

var errSequenceBody = errors.New("a sequence body message cannot be bound to a string") //nolint:gochecknoglobals // a sentinel

// bindingData is what the host knows of a trigger: names compared without case, each with its first spelling, in order.
type bindingData []member

// set adds a name or, as the host's dictionary does, replaces its value and keeps its spelling.
func (d *bindingData) set(name string, value []byte) {
	i := slices.IndexFunc(*d, func(m member) bool { return strings.EqualFold(m.name, name) })
	if i < 0 {
		*d = append(*d, member{name, value})
		return
	}
	(*d)[i].value = value
}

// add adds a name unless it is there.
func (d *bindingData) add(name string, value []byte) {
	if !slices.ContainsFunc(*d, func(m member) bool { return strings.EqualFold(m.name, name) }) {
		*d = append(*d, member{name, value})
	}
}

func (d *bindingData) without(name string) []member {
	return slices.DeleteFunc(*d, func(m member) bool { return strings.EqualFold(m.name, name) })
}

// text adds a string; nil is null, which the host leaves out.
func (d *bindingData) text(name string, value *string) {
	if value != nil {
		d.set(name, stringValue(*value))
	}
}

// serviceBusBindingData are the members of ServiceBusTriggerBindingStrategy.cs. The objects that a compiled function
// would settle messages with are serialized by the real host too, so a handler must bear them; here they are as good as
// empty.
func serviceBusBindingData(message *azservicebus.ReceivedMessage) bindingData {
	var d bindingData
	for _, name := range []string{
		"MessageReceiver", "MessageSession", "MessageActions", "SessionActions", "ReceiveActions",
	} {
		d.set(name, []byte(`{}`))
	}
	d.set("Client", []byte(`{"IsClosed":false,"TransportType":0}`))
	d.set("DeliveryCount", plainValue(strconv.FormatUint(uint64(message.DeliveryCount), 10)))
	d.text("DeadLetterSource", message.DeadLetterSource)
	d.set("LockToken", stringValue(guid(message.LockToken)))
	expires := expiry(message)
	d.set("ExpiresAtUtc", dotnetDateTime(expires))
	d.set("ExpiresAt", dotnetDateTimeOffset(expires))
	var enqueued time.Time
	if message.EnqueuedTime != nil {
		enqueued = *message.EnqueuedTime
	}
	d.set("EnqueuedTimeUtc", dotnetDateTime(enqueued))
	d.set("EnqueuedTime", dotnetDateTimeOffset(enqueued))
	if message.MessageID != "" {
		d.text("MessageId", &message.MessageID)
	}
	d.text("ContentType", message.ContentType)
	d.text("ReplyTo", message.ReplyTo)
	if message.SequenceNumber != nil {
		d.set("SequenceNumber", plainValue(strconv.FormatInt(*message.SequenceNumber, 10)))
	}
	d.text("To", message.To)
	d.text("Subject", message.Subject)
	d.text("Label", message.Subject)
	d.text("CorrelationId", message.CorrelationID)
	properties := applicationProperties(message.ApplicationProperties)
	d.set("ApplicationProperties", properties)
	d.set("UserProperties", properties)
	d.text("SessionId", message.SessionID)
	d.text("ReplyToSessionId", message.ReplyToSessionID)
	d.text("PartitionKey", message.PartitionKey)
	return d
}

// applyBody copies every top-level property of a JSON object that is neither an array nor null over what is known under
// its name: a body that says "deliveryCount" hides the real one. Source: Utility.cs ApplyBindingData.
func (d *bindingData) applyBody(text string, zone *time.Location) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") || !json.Valid([]byte(text)) {
		return
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	_, _ = decoder.Token() // the brace; what follows is valid
	for decoder.More() {
		token, _ := decoder.Token()
		name, _ := token.(string)
		var raw json.RawMessage
		_ = decoder.Decode(&raw)
		if value := bodyValue(raw, zone); value != nil && !strings.HasSuffix(strings.ToLower(name), "trigger") {
			if strings.EqualFold(name, systemMember) {
				name = systemMember // known before the trigger's data, under this spelling
			}
			d.set(name, value)
		}
	}
}

// bodyValue is a property of a body on the wire: objects are objects, everything else is turned into a string first,
// the .NET way: "True", 1.0 as "1", a date in the invariant culture. Nil stands for what is left out.
func bodyValue(raw json.RawMessage, zone *time.Location) []byte {
	switch raw[0] {
	case '[', 'n':
		return nil
	case '{':
		value, _ := newtonsoft(nil, raw, zone) // part of valid JSON
		return value
	case 't':
		return stringValue("True")
	case 'f':
		return stringValue("False")
	case '"':
		text := unquote(raw)
		if at, ok := invariantDate(text, zone); ok {
			text = at
		}
		return stringValue(text)
	default:
		return stringValue(strings.TrimSuffix(string(appendNumber(nil, string(raw))), ".0"))
	}
}

// invariantDate prints a string that Newtonsoft takes for a date as Convert.ToString(date, InvariantCulture) does.
func invariantDate(s string, zone *time.Location) (string, bool) {
	t, kind, ok := findDate(s)
	if kind == kindLocal {
		t = t.In(zone)
	}
	return t.Format("01/02/2006 15:04:05"), ok
}

// plainValue is how a .NET number or truth value goes over the wire: its JSON, as a JSON string.
func plainValue(text string) []byte { return appendQuoted(nil, text) }

// dotnetDateTime and dotnetDateTimeOffset are dates on the wire: the host takes them through a text of whole seconds,
// in which a DateTime loses the knowledge that it is UTC.
func dotnetDateTime(t time.Time) []byte {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05"`))
}

func dotnetDateTimeOffset(t time.Time) []byte {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05+00:00"`))
}

// maxDateTime is DateTimeOffset.MaxValue: a message without a time to live expires then.
func maxDateTime() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

func expiry(message *azservicebus.ReceivedMessage) time.Time {
	if message.TimeToLive == nil || *message.TimeToLive == 0 || message.ExpiresAt == nil {
		return maxDateTime()
	}
	return *message.ExpiresAt
}

func guid(b [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// applicationProperties are a real object. Their order on the wire is lost in the client, so they come by name.
func applicationProperties(properties map[string]any) []byte {
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(properties)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, name), ':')
		out = appendProperty(out, properties[name])
	}
	return append(out, '}')
}

// appendProperty writes an AMQP value as Newtonsoft writes the .NET value it becomes.
func appendProperty(dst []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendQuoted(dst, v)
	case []byte:
		return appendQuoted(dst, base64.StdEncoding.EncodeToString(v))
	case time.Time:
		return v.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.9999999Z"`)
	case float32:
		return appendNumber(dst, strconv.FormatFloat(float64(v), 'e', -1, 32))
	case float64:
		return appendNumber(dst, strconv.FormatFloat(v, 'e', -1, 64))
	case bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Append(dst, v)
	default: // a UUID
		return appendQuoted(dst, fmt.Sprint(v))
	}
}
