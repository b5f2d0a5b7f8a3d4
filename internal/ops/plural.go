package ops

// Plural returns the word that goes with a number: one, or many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
