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

// Started answers when a process started, as a text that differs from that of every other process that had or will have
// its id: on Linux the boot and the clock tick, elsewhere what `ps` says. It fails when there is no such process.
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

// fromProc takes the start time, field 22 of proc(5) stat, and the boot. The second field is the program's name in
// brackets and may hold anything, brackets and blanks too, so fields are counted from its last bracket.
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
