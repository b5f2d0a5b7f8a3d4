package handlers

// BatchWorker hangs the committing of batches on their queue: functions/BatchWorker.
func BatchWorker(r Receiver) Mounted { return receives("BatchWorker", r) }
