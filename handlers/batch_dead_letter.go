package handlers

// BatchDeadLetter mounts functions/BatchDeadLetter, which handles the dead letters of the batches' queue. That queue
// has no delivery limit, so a message that fails here comes back for ever.
func BatchDeadLetter(r Receiver) Mounted {
	m := queueFunction("BatchDeadLetter", r)
	m.Slow = true
	return m
}
