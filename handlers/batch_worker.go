package handlers

// BatchWorker mounts functions/BatchWorker, which commits batches.
func BatchWorker(r Receiver) Mounted { return queueFunction("BatchWorker", r) }
