package ops

import (
	"context"
	"errors"

	"sqlwriter/internal/run"
)

type actorKey struct{}

// WithActor names who asks: a person or a function key. Every action needs one, for the audit log. The name comes from
// a checked identity, never from the request.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, run.Truncate(name, run.MaxBy))
}

// errNobody is a mistake of the program, not of the caller.
var errNobody = errors.New("ops: an action without WithActor")

// actor returns who asks.
func actor(ctx context.Context) (string, error) {
	name, _ := ctx.Value(actorKey{}).(string)
	if name == "" {
		return "", errNobody
	}
	return name, nil
}
