// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// GuardianArg as first argument makes gompirun a guardian.
const GuardianArg = "--gompirun-guardian"

// guardian is the head's handle of the guardian process. That one reads the
// process groups of the job from a pipe, whose end means that the head is
// gone: then it kills those that are left. The death signal alone would miss
// the children of ranks.
type guardian struct {
	pid  int
	pipe int // write end; non-blocking, so that a stopped guardian stops nobody
}

// startGuardian must run on the forking thread.
func startGuardian(null int) (*guardian, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	defer unix.Close(p[0])
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"gompirun", GuardianArg}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1", "GOGC=off"},
		// A session of its own, because it has to survive the terminal.
		Files: []uintptr{uintptr(p[0]), uintptr(null), uintptr(null)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(p[1])
		return nil, fmt.Errorf("cannot start the guardian process from /proc/self/exe: %w", err)
	}
	unix.SetNonblock(p[1], true)
	return &guardian{pid, p[1]}, nil
}

// add and remove tell which groups live. A group must be removed before its
// leader is reaped: afterwards the number may be somebody else's.
func (g *guardian) add(pgid int)    { g.tell(int32(pgid)) }
func (g *guardian) remove(pgid int) { g.tell(-int32(pgid)) }

// tell ignores errors: a guardian that somebody killed leaves the death
// signal, which still kills the ranks themselves.
func (g *guardian) tell(n int32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	for {
		_, err := unix.Write(g.pipe, b[:])
		if err != unix.EINTR {
			return
		}
	}
}

// stop ends the guardian when no group is left.
func (g *guardian) stop() {
	unix.Kill(g.pid, unix.SIGKILL)
	reap(g.pid)
	unix.Close(g.pipe)
}

// Guard is the guardian process.
func Guard(pipe io.Reader) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2)
	groups := map[int32]bool{}
	for {
		var b [4]byte
		if _, err := io.ReadFull(pipe, b[:]); err != nil {
			break
		}
		if n := int32(binary.NativeEndian.Uint32(b[:])); n > 1 {
			groups[n] = true
		} else {
			delete(groups, -n)
		}
	}
	for g := range groups {
		if int(g) != os.Getpid() {
			unix.Kill(-int(g), unix.SIGKILL)
		}
	}
	return 0
}
