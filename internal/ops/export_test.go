package ops

// NightlyID is the id of a day's comparison.
var NightlyID = nightlyID //nolint:gochecknoglobals // for the tests

// With is Samples.with.
func With(all Samples, s Sample) Samples { return all.with(s) }
