package ops

// NightlyID is the id of a day's comparison.
var NightlyID = nightlyID //nolint:gochecknoglobals // for the tests
