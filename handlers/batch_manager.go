package handlers

// BatchManager hangs the division of runs into batches on their queue: functions/BatchManager.
func BatchManager(r Receiver) Mounted { return receives("BatchManager", r) }
