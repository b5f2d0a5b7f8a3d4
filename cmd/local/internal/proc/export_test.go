package proc

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }
