package shared

import "time"

// ScanMoment reads a value of a driver's as a time.
func ScanMoment(value any) (time.Time, error) {
	m := moment{Time: time.Unix(1, 0)} // a row before this one
	err := m.Scan(value)
	return m.Time, err
}

// Millis is a duration as the statements take it.
func Millis(d time.Duration) int64 { return millis("d", d).Value.(int64) }
