package funchost

import (
	"os/exec"
	"syscall"
)

// dieWithHost makes the kernel kill the handler when the host is killed. In Azure the container ends with both; a local
// host that dies alone would leave an orphaned handler behind. The signal is tied to the thread that starts the
// process, so the caller stays on it.
func dieWithHost(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
