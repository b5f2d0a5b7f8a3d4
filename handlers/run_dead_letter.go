package handlers

// RunDeadLetter hangs what is done about messages of runs that nobody could handle on their dead-letter queue:
// functions/RunDeadLetter. As BatchDeadLetter, it has no limit of deliveries.
func RunDeadLetter(r Receiver) Mounted {
	m := receives("RunDeadLetter", r)
	m.Slow = true
	return m
}
