package handlers

// BatchManager mounts functions/BatchManager, which divides runs into batches.
func BatchManager(r Receiver) Mounted { return queueFunction("BatchManager", r) }
