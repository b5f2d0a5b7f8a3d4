package opsapi

import (
	"context"
	"fmt"
)

// Limited makes the calls of another caller that a role allows. Errors also: *DeniedError for the others.
func Limited(c Caller, role Role) Caller { return limited{c, role} }

type limited struct {
	Caller

	role Role
}

func (l limited) call(ctx context.Context, r Row, request any) (any, error) {
	if !l.role.Allows(r.Role) {
		return nil, &DeniedError{fmt.Errorf("%s requires the role %s, and yours is %s", r.Name, r.Role, l.role)}
	}
	return l.Caller.call(ctx, r, request)
}

// Canned answers every call by a function: with a value of the call's answer type, or an error. It is for pages with planted states.
func Canned(answer func(ctx context.Context, name string, request any) (any, error)) Caller {
	return canned(answer)
}

type canned func(ctx context.Context, name string, request any) (any, error)

func (c canned) call(ctx context.Context, r Row, request any) (any, error) {
	return c(ctx, r.Name, request)
}
