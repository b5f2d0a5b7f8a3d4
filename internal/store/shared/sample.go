package shared

import "sqlwriter/internal/fault"

// SampleKey is the primary key by which a sample of IVCE_DTL is told from a user's table.
const SampleKey = "pk_sqlwriter_sample"

// CodeNoSample and NoSampleReason are the code and the reason of NoSample.
const (
	CodeNoSample   = "no_sample"
	NoSampleReason = "IVCE_DTL exists and is no sample: leave --sample-tables out"
)

// NoSample is the error of a sample in a database that has the user's tables.
func NoSample(op string) error {
	return fault.New(fault.Infrastructure, op, CodeNoSample, NoSampleReason)
}
