package term

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestATableIsAligned(t *testing.T) {
	require.Equal(t, "  column   old\n  -------  ----\n  Ä        NULL\n  UPC_CD   \"1\"\n",
		Table([][]string{{"column", "old"}, {"Ä", "NULL"}, {"UPC_CD ", `"1"`}}))
}

func TestTheBar(t *testing.T) {
	require.Equal(t, "[>                             ] 0/500", Bar(0, 500))
	require.Equal(t, "[===============>              ] 250/500", Bar(250, 500))
	require.Equal(t, "[==============================] 500/500", Bar(500, 500))
	require.Equal(t, "[==============================] 0/0", Bar(0, 0))
}

func TestALogGetsALineNowAndThen(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	o := New(&b)
	o.now = func() time.Time { return now }
	for done := range 101 {
		o.Progress(done, 100, "")
	}
	require.Equal(t, 5, strings.Count(b.String(), "\n"), b.String())
	now = now.Add(6 * time.Second)
	o.Progress(100, 100, "still waiting")
	require.Contains(t, b.String(), "still waiting")
	o.Done()
}

func TestATerminalKeepsTheBarBelowTheLines(t *testing.T) {
	var b strings.Builder
	o := &Output{w: &b, tty: true, now: time.Now}
	o.Progress(1, 2, "x")
	o.Linef("a %s", "line")
	o.Done()
	o.Print("after\n")
	bar := Bar(1, 2) + "  x"
	require.Equal(t, "\r\x1b[K"+bar+"\r\x1b[Ka line\n"+bar+"\nafter\n", b.String())
}
