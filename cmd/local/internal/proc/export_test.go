package proc

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Len is how many processes the group stops.
func (g *Group) Len() int { return len(g.all) }
