package opsapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"sqlwriter/internal/ops"
)

// Spec describes a call.
type Spec struct {
	// Name is the noun and the verb of its command: "run.start".
	Name string
	// Method is GET for a read, POST for an action.
	Method string
	// Path is below /api/ops/v1 and /api/ui/api/v1. It holds no id: the host rewrites paths that contain % or ..
	// (docs/facts.md F12).
	Path string
	Role Role
	// Says is what it does, in a sentence.
	Says string
}

// Call is a row with its types. Q has the parameters: of a GET the query, of a POST the members of the body. Its JSON
// tags name them. A is the result, a JSON object.
type Call[Q, A any] struct {
	Spec

	// Do is the use case.
	Do func(o *ops.Ops, ctx context.Context, q Q) (A, error)
}

// Row is a row of any types.
type Row struct {
	Spec

	// Request and Answer are the types Q and A.
	Request, Answer reflect.Type
	// run makes the call with a value of type Request, and returns one of type Answer.
	run func(ctx context.Context, o *ops.Ops, request any) (any, error)
}

func (c Call[Q, A]) row() Row {
	return Row{
		Spec: c.Spec, Request: reflect.TypeFor[Q](), Answer: reflect.TypeFor[A](),
		run: func(ctx context.Context, o *ops.Ops, request any) (any, error) {
			q, ok := request.(Q)
			if !ok {
				// impossible: Read and Do make it
				return nil, fmt.Errorf("opsapi: %s: expected %T, found %T", c.Name, q, request)
			}
			return c.Do(o, ctx, q)
		},
	}
}

// reads and acts make the two sorts of rows. readsContent is for an answer that is values of documents or rows as a
// whole; single members of other answers are tagged (role.go).
func reads[Q, A any](name, path, says string, do func(*ops.Ops, context.Context, Q) (A, error)) Call[Q, A] {
	return Call[Q, A]{Spec{Name: name, Method: http.MethodGet, Path: path, Role: Reader, Says: says}, do}
}

func readsContent[Q, A any](name, path, says string, do func(*ops.Ops, context.Context, Q) (A, error)) Call[Q, A] {
	c := reads(name, path, says, do)
	c.Role = Operator
	return c
}

func acts[Q, A any](name, path, says string, do func(*ops.Ops, context.Context, Q) (A, error)) Call[Q, A] {
	return Call[Q, A]{Spec{Name: name, Method: http.MethodPost, Path: path, Role: Operator, Says: says}, do}
}

// Caller makes calls: Direct, Canned or Remote.
type Caller interface {
	call(ctx context.Context, r Row, request any) (any, error)
}

// Do makes a call. Errors: *ops.RequestError for a refused request; classified errors (internal/fault). Through Remote
// also *LostError and *DeniedError.
func Do[Q, A any](ctx context.Context, caller Caller, call Call[Q, A], q Q) (A, error) {
	answer, err := caller.call(ctx, call.row(), q)
	a, _ := answer.(A) // nil with an error
	return a, err
}

// Make is Do for a row of any types: the request has its type Request, the answer its type Answer. Errors as Do.
func Make(ctx context.Context, caller Caller, r Row, request any) (any, error) {
	return caller.call(ctx, r, request)
}

// Query makes the request of a GET call from the texts of its parameters, as the address has them. Errors:
// *ops.RequestError (usage).
func (c Call[Q, A]) Query(texts map[string]string) (q Q, err error) {
	request, err := c.row().Read(texts, nil)
	if err != nil {
		return q, err
	}
	q, _ = request.(Q) // Read makes it
	return q, nil
}
