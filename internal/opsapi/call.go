package opsapi

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	"sqlwriter/internal/ops"
)

// Role is what a caller may do.
type Role string

// The roles. An operator may also read.
const (
	Reader   Role = "Reader"
	Operator Role = "Operator"
)

// Allows reports whether a caller with role r may make a call of the wanted role.
func (r Role) Allows(wanted Role) bool { return r == wanted || r == Operator }

// Spec describes a call.
type Spec struct {
	// Name is the noun and the verb of its command: "run.start".
	Name string
	// Method is GET for a read, POST for an action.
	Method string
	// Path is below /api/ops/v1 and /api/ui/api/v1. It holds no id: the host rewrites paths that contain % or .. (docs/facts.md F12).
	Path string
	Role Role
	// Says is what it does, in a sentence.
	Says string
}

// Call is a row with its types. Q has the parameters: of a GET the query, of a POST the members of the body. Its JSON tags name them.
// A is the result, a JSON object.
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
	// Run makes the call with a value of type Request, and returns one of type Answer.
	Run func(ctx context.Context, o *ops.Ops, request any) (any, error)
}

func (c Call[Q, A]) row() Row {
	return Row{
		Spec: c.Spec, Request: reflect.TypeFor[Q](), Answer: reflect.TypeFor[A](),
		Run: func(ctx context.Context, o *ops.Ops, request any) (any, error) {
			q, ok := request.(Q)
			if !ok {
				return nil, fmt.Errorf("opsapi: %s: expected %T, found %T", c.Name, q, request) // impossible: Read and Do make it
			}
			return c.Do(o, ctx, q)
		},
	}
}

// reads and acts make the two sorts of rows. readsContent is for what gives the content of a document, which a reader may not see.
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

// Caller makes calls: Direct or Remote.
type Caller interface {
	call(ctx context.Context, r Row, request any) (any, error)
}

// Do makes a call. Errors: *ops.RequestError for a refused request; classified errors (internal/fault). Through Remote also *LostError
// and *DeniedError.
func Do[Q, A any](ctx context.Context, caller Caller, call Call[Q, A], q Q) (A, error) {
	answer, err := caller.call(ctx, call.row(), q)
	a, _ := answer.(A) // nil with an error
	return a, err
}

// Direct makes calls by the use cases in this process. by is who asks, for the audit log.
func Direct(o *ops.Ops, by string) Caller { return direct{o, by} }

type direct struct {
	ops *ops.Ops
	by  string
}

func (d direct) call(ctx context.Context, r Row, request any) (any, error) {
	return r.Run(ops.WithActor(ctx, d.by), d.ops, request)
}

// Query makes the request of a GET call from the texts of its parameters, as the address has them. Errors: *ops.RequestError (usage).
func (c Call[Q, A]) Query(texts map[string]string) (q Q, err error) {
	request, err := c.row().Read(texts, nil)
	if err != nil {
		return q, err
	}
	q, _ = request.(Q) // Read makes it
	return q, nil
}
