package stackfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Started returns the start time of a process as a text that no other process with the same id has. On Linux it is the
// boot id and the clock tick, elsewhere the output of `ps`. It fails if there is no such process.
func Started(ctx context.Context, pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return fromProc(stat)
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return "", fmt.Errorf("no process %d", pid)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("no process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// fromProc returns the start time, which is field 22 of proc(5) stat, and the boot id. The second field is the
// program's name in brackets. The name may contain brackets and spaces, so fields are counted from the last bracket.
func fromProc(stat []byte) (string, error) {
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	const stateField, startField = 3, 22
	fields := strings.Fields(string(rest))
	if len(fields) <= startField-stateField {
		return "", errors.New("cannot read the process's start time")
	}
	if fields[0] == "Z" {
		return "", errors.New("the process has ended")
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[startField-stateField], nil
}
