package proc

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }
