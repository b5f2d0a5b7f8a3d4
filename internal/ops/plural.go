package ops

import "strconv"

// Plural returns the word that goes with a number: one, or many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// documents is a number of documents in words.
func documents(n int) string { return strconv.Itoa(n) + " " + Plural(n, "document", "documents") }

// numberOfBatches is a number of batches in words.
func numberOfBatches(n int) string { return strconv.Itoa(n) + " " + Plural(n, "batch", "batches") }
