package scenario

import (
	"bytes"
	"sync"
)

// logRecorder keeps the last lines that the product logs, and counts some words in them.
type logRecorder struct {
	mu    sync.Mutex
	last  [][]byte
	words map[string]int
}

const lastLines = 60

// Words that tests ask for.
const (
	// massFailure is the event of a mass failure; the code of the refusal here stands in it.
	massFailure = `mass_failure`
	errorLine   = `"level":"error"`
	feedMissed  = `"event":"feed_missed"`
)

func newLogRecorder() *logRecorder {
	return &logRecorder{words: map[string]int{massFailure: 0, errorLine: 0, feedMissed: 0}}
}

// Write implements io.Writer.
func (l *logRecorder) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for word := range l.words {
		if bytes.Contains(line, []byte(word)) && (word != massFailure || bytes.Contains(line, []byte("547"))) {
			l.words[word]++
		}
	}
	l.last = append(l.last[max(0, len(l.last)-lastLines+1):], bytes.Clone(line))
	return len(line), nil
}

// count is how many lines had a word of newLogRecorder.
func (l *logRecorder) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.words[word]
}
