package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"sqlwriter/test/emulators/cosmosdb/provision"
	"sqlwriter/test/sample"
)

// peakRSS is a process's high-water mark in bytes, where /proc has it.
func peakRSS(pid int) (int64, bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.SplitSeq(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10, err == nil
		}
	}
	return 0, false
}

func (s *stack) put(d sample.Document) error {
	doc, err := provision.InRequest(d.JSON)
	if err != nil {
		return err
	}
	return s.docs.Put(s.t.Context(), doc)
}
