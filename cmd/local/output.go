package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// output prints lines. It is safe for concurrent use.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// linef prints a line.
func (o *output) linef(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = fmt.Fprintf(o.w, format+"\n", args...) // a closed terminal must not stop the run
}

// table prints rows in columns with two spaces between them. The first row is the header.
func (o *output) table(rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	line := make([]string, len(widths))
	for i, w := range widths {
		line[i] = strings.Repeat("-", w)
	}
	for _, row := range append([][]string{rows[0], line}, rows[1:]...) {
		text := ""
		for i, cell := range row {
			text += "  " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		}
		o.linef("%s", strings.TrimRight(text, " "))
	}
}
