package handlers

// BatchDeadLetter hangs what is done about messages of batches that nobody could handle on their dead-letter queue:
// functions/BatchDeadLetter. That queue has no limit of deliveries: a message that fails here comes back for ever.
func BatchDeadLetter(r Receiver) Mounted {
	m := receives("BatchDeadLetter", r)
	m.Slow = true
	return m
}
