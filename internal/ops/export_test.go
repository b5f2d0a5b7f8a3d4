package ops

// With is Samples.with.
func With(all Samples, s Sample) Samples { return all.with(s) }
