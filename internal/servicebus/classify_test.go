package servicebus

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"
)

// native is an error as the SDK gives it, for one rule.
func native(t *testing.T, r rule) error {
	switch about := r.about.(type) {
	case amqp.ErrCond:
		return &amqp.Error{Condition: about, Description: "as the service has it"}
	case azservicebus.Code:
		return fmt.Errorf("wrapped: %w", &azservicebus.Error{Code: about})
	case error:
		return about
	}
	err := map[string]error{
		"identity": &azidentity.AuthenticationFailedError{}, "unknown": errors.New("marker"),
	}[r.code]
	require.Error(t, err, "%s: say what error it is about", r.code)
	return err
}

// Every rule holds for the SDK's error, and `explain` knows it.
func TestTranslateEveryRow(t *testing.T) {
	for _, r := range rules() {
		got, state := translate("servicebus: test", native(t, r))
		require.Equal(t, r.kind, got.Kind, r.code)
		require.Equal(t, r.reason, got.Reason, "another row decides for %s", got.Code)
		require.Equal(t, r.code, got.Code)
		require.Equal(t, r.state, state)
		if about := reflect.ValueOf(r.about); about.Kind() == reflect.String && r.code != codeTooLarge {
			require.Equal(t, about.String(), r.code, "conditions and codes keep their names")
		}
		require.NotContains(t, []string{"amqp", "sdk", ""}, r.sourceName(), "a source is written out")
		require.NotContains(t, got.Error(), "marker", "a foreign text may be anything")
		rows := 0
		for _, row := range Faults() {
			if row.Names(got.Code) {
				rows++
				require.Equal(t, "servicebus", row.Adapter)
				require.Equal(t, got.Kind, row.Kind)
				require.Equal(t, got.Reason, row.Reason)
				require.NotEmpty(t, row.Consequence().Next)
			}
		}
		require.Equal(t, 1, rows, got.Code)
	}
}

// After a detach, whatever its condition, the Sender is replaced; after a rejection it is used again.
func TestADetachLeavesNoUsableSender(t *testing.T) {
	for _, r := range rules() {
		condition, ok := r.about.(amqp.ErrCond)
		if !ok {
			continue
		}
		remote := &amqp.Error{Condition: condition}
		for _, err := range []error{
			&amqp.LinkError{RemoteErr: remote}, &amqp.SessionError{RemoteErr: remote},
			&amqp.ConnError{RemoteErr: remote},
		} {
			got, state := translate("servicebus: test", err)
			require.Equal(t, r.kind, got.Kind)
			require.Equal(t, broken, state, "%T %s", err, condition)
		}
	}
}

// An operator reads the service's text, with the id for the vendor's support.
func TestACauseSaysWhatTheServiceSaid(t *testing.T) {
	got, _ := translate("servicebus: send",
		&amqp.Error{Condition: amqp.ErrCondNotFound, Description: "TrackingId:1-2-3 " + strings.Repeat("x", 500)})
	require.Contains(t, got.Error(),
		"servicebus: send: infrastructure amqp:not-found: there is no such queue: TrackingId:1-2-3")
	require.Less(t, len(got.Error()), 400)
	var native *amqp.Error
	require.ErrorAs(t, got, &native, "the cause is kept")
}
