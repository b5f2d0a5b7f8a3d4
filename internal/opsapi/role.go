package opsapi

import (
	"context"
	"fmt"
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

// Who makes calls. Name goes to the audit log.
type Who struct {
	Name string
	Role Role
}

// May reports whether who asks may act, and see values of documents and rows.
func (w Who) May() bool { return w.Role == Operator }

// Permit refuses a call to who may not make it. Errors: *DeniedError.
func (w Who) Permit(r Row) error {
	if w.May() || w.Role == r.Role {
		return nil
	}
	return &DeniedError{fmt.Errorf("%s has the role %s; %s requires %s", w.Name, w.Role, r.Name, r.Role)}
}

// Direct makes calls by the use cases in this process, in the name and the role of who asks. Errors of its calls also:
// *DeniedError.
func Direct(o *ops.Ops, who Who) Caller {
	return permitted{who, func(ctx context.Context, r Row, request any) (any, error) {
		return r.run(ops.WithActor(ctx, who.Name), o, request)
	}}
}

// Canned answers every call by a function: with a value of the call's answer type, or an error. It is for pages with
// planted states.
func Canned(who Who, answer func(ctx context.Context, name string, request any) (any, error)) Caller {
	return permitted{who, func(ctx context.Context, r Row, request any) (any, error) {
		return answer(ctx, r.Name, request)
	}}
}

// permitted makes calls in this process. For the API and for the pages it is the one place where a role decides: which
// calls are made, and what of an answer is shown.
type permitted struct {
	who  Who
	make func(ctx context.Context, r Row, request any) (any, error)
}

func (p permitted) call(ctx context.Context, r Row, request any) (any, error) {
	if err := p.who.Permit(r); err != nil {
		return nil, err
	}
	answer, err := p.make(ctx, r, request)
	if err != nil || p.who.May() {
		return answer, err
	}
	shown := reflect.New(r.Answer).Elem()
	shown.Set(reflect.ValueOf(answer))
	hide(shown)
	return shown.Interface(), nil
}

// RoleTag is the struct tag of a member of an answer that has values of documents or rows: `role:"Operator"`. A reader
// gets it empty. No map and no interface has such a member below it.
const RoleTag = "role"

// hide empties the tagged members of a value, also those of the structs, pointers and lists in it.
func hide(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // the others have no members
	case reflect.Pointer:
		if !v.IsNil() {
			hide(v.Elem())
		}
	case reflect.Slice:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() != reflect.Uint8; i++ {
			hide(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case f.Tag.Get(RoleTag) != "":
				v.Field(i).SetZero()
			case f.IsExported():
				hide(v.Field(i))
			}
		}
	}
}
