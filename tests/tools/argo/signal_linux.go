// What argo-workflows has in workflow/executor/osspecific/signal_linux.go, which its published module lacks: taken from
// its signal_darwin.go, whose calls are the same on Linux.
package osspecific

import (
	"os"
	"syscall"
	"time"

	"github.com/argoproj/argo-workflows/v3/util/errors"
)

var (
	Term = syscall.SIGTERM
)

func CanIgnoreSignal(s os.Signal) bool {
	return s == syscall.SIGCHLD || s == syscall.SIGURG
}

func Kill(pid int, s syscall.Signal) error {
	pgid, err := syscall.Getpgid(pid)
	if err == nil {
		return syscall.Kill(-pgid, s)
	}
	return syscall.Kill(pid, s)
}

func Setpgid(a *syscall.SysProcAttr) {
	a.Setpgid = true
}

func Wait(process *os.Process) error {
	pid := process.Pid
	if err := process.Release(); err != nil {
		return err
	}
	for {
		var s syscall.WaitStatus
		wpid, err := syscall.Wait4(-1, &s, syscall.WNOHANG, nil)
		if err != nil {
			return err
		}
		if wpid == pid {
			if s.Exited() {
				return errors.NewExitErr(s.ExitStatus())
			} else if s.Signaled() {
				return errors.NewExitErr(128 + int(s.Signal()))
			}
		}
		time.Sleep(time.Second)
	}
}
