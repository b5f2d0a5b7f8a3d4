package opsapi

import "reflect"

// Members are a struct's members as encoding/json sees them.
func Members(t reflect.Type) []Parameter { return members(t, nil) }

// Index is where the member stands in the struct.
func (p Parameter) Index() []int { return p.index }
