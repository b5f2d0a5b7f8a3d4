package open

import (
	"context"

	"sqlwriter/internal/breaker"
	"sqlwriter/internal/commit"
	"sqlwriter/internal/config"
)

// Breaker makes the breaker over the control document. It makes no request. The caller gives in o what differs between
// the app and the operators' tools; the environment, its limits and the heartbeat come from c and the sink. A shadow
// does not use the control document: its previews would tell the live app that a database commits.
func Breaker(c config.Config, control breaker.ControlStore, sink commit.Sink, o breaker.Options) *breaker.Breaker {
	o.SysName, o.MaxPoisonPerHour, o.Serial = c.SysName, c.MaxPoisonPerHour, c.SQL.OneWriter
	o.Heartbeat, o.TakeOver = sink.Heartbeat, sink.TakeOver
	// a shadow writes nothing, not even a heartbeat, and must not change the live app's breaker
	if c.Mode == config.ModeShadow {
		control = nil
		o.Heartbeat = func(ctx context.Context, known breaker.Heartbeat) (breaker.Heartbeat, error) {
			_, err := sink.Apply(ctx, nil, commit.Preview, known)
			return breaker.Heartbeat{}, err
		}
	}
	return breaker.New(control, o)
}
