package handlers

// RunDeadLetter mounts functions/RunDeadLetter, which handles the dead letters of the runs' queue. Like that of
// BatchDeadLetter, the queue has no delivery limit.
func RunDeadLetter(r Receiver) Mounted {
	m := queueFunction("RunDeadLetter", r)
	m.Slow = true
	return m
}
