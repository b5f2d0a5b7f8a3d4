// Package term prints lines, tables and one progress bar for the local stack. On a terminal the bar is redrawn in place.
// Elsewhere it is printed as a line now and then, so that a log stays readable.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Output writes to a terminal or a file. It is safe for concurrent use.
type Output struct {
	mu  sync.Mutex
	w   io.Writer
	tty bool
	bar string // the current bar; empty if there is none
	// last is the time of the last line for a bar that cannot be redrawn, shown its share in quarters.
	last  time.Time
	shown int
	now   func() time.Time
}

// New makes an Output. It redraws the bar in place if w is a terminal.
func New(w io.Writer) *Output {
	o := &Output{w: w, now: time.Now}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		o.tty = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return o
}

// Linef writes a line, above the bar if there is one.
func (o *Output) Linef(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(fmt.Sprintf(format, args...) + "\n")
}

// Print writes lines as they are, above the bar if there is one.
func (o *Output) Print(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(strings.TrimRight(text, "\n") + "\n")
}

func (o *Output) write(text string) {
	if o.tty && o.bar != "" {
		text = "\r\x1b[K" + text + o.bar
	}
	_, _ = io.WriteString(o.w, text) // a closed terminal must not stop the run
}

// Progress shows the progress in the bar, followed by note.
func (o *Output) Progress(done, total int, note string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bar := Bar(done, total) + "  " + note
	if o.tty {
		o.bar = bar
		_, _ = io.WriteString(o.w, "\r\x1b[K"+bar)
		return
	}
	// A new line comes at each quarter, or after five seconds.
	quarter := 0
	if total > 0 {
		quarter = 4 * done / total
	}
	if now := o.now(); quarter > o.shown || o.last.IsZero() || now.Sub(o.last) >= 5*time.Second {
		o.last, o.shown = now, quarter
		_, _ = io.WriteString(o.w, "  "+bar+"\n")
	}
}

// Done ends the bar.
func (o *Output) Done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tty && o.bar != "" {
		_, _ = io.WriteString(o.w, "\n")
	}
	o.bar, o.last, o.shown = "", time.Time{}, 0
}

// Bar draws a bar of thirty characters: "[=====>     ] 170/500".
func Bar(done, total int) string {
	const width = 30
	full := width
	if total > 0 {
		full = min(width, width*done/total)
	}
	head := ""
	if full < width {
		head = ">"
	}
	return fmt.Sprintf("[%-*s] %d/%d", width, strings.Repeat("=", full)+head, done, total)
}

// Table aligns rows in columns with two spaces between them. The first row is the header.
func Table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		line := "  "
		for i, cell := range row {
			line += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if n == 0 {
			line = "  "
			for _, w := range widths {
				line += strings.Repeat("-", w) + "  "
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}
