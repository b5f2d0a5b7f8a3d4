package shared

import "time"

// ScanMoment reads a driver's value as a time.
func ScanMoment(value any) (time.Time, error) {
	m := moment{Time: time.Unix(1, 0)} // the value of an earlier row
	err := m.Scan(value)
	return m.Time, err
}

// Millis is the parameter of a duration.
func Millis(d time.Duration) int64 { return millis("d", d).Value.(int64) }
