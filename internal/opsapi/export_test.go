package opsapi

// Index is where the member stands in the struct.
func (p Parameter) Index() []int { return p.index }
