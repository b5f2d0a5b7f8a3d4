//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the process.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
