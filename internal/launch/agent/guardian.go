// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// GuardianArg as first argument makes gompirun a guardian.
const GuardianArg = "--gompirun-guardian"

// guardian is the head's handle of the guardian process. That one waits for the end of
// a pipe, which means that the head is gone: then it kills the process groups of the job
// that are left, which it finds in a file of numbers. The death signal alone would miss
// the children of ranks.
type guardian struct {
	pid    int
	pipe   int // write end, into which nothing is written
	groups int // a memfd of 32-bit numbers; 0 is none

	mu   sync.Mutex
	free numbers
	at   map[int]int // where in the file a group is
}

// The guardian's descriptors beside standard output and error.
const (
	guardPipe   = 0
	guardGroups = 3
)

// startGuardian must run on the forking thread.
func startGuardian(null int) (*guardian, error) {
	groups, err := unix.MemfdCreate("gompirun groups", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		unix.Close(groups)
		return nil, fmt.Errorf("pipe: %w", err)
	}
	defer unix.Close(p[0])
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"gompirun", GuardianArg}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1", "GOGC=off"},
		// A session of its own, because it has to survive the terminal.
		Files: []uintptr{guardPipe: uintptr(p[0]), 1: uintptr(null), 2: uintptr(null), guardGroups: uintptr(groups)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(groups)
		unix.Close(p[1])
		return nil, fmt.Errorf("cannot start the guardian process from /proc/self/exe: %w", err)
	}
	return &guardian{pid: pid, pipe: p[1], groups: groups, at: map[int]int{}}, nil
}

// add and remove tell which groups live; nobody wakes. A group must be removed before
// its leader is reaped: afterwards the number may be somebody else's.
func (g *guardian) add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[pgid] = g.free.take()
	g.write(g.at[pgid], int32(pgid))
}

func (g *guardian) remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at, ok := g.at[pgid]; ok {
		g.write(at, 0)
		g.free.put(at)
		delete(g.at, pgid)
	}
}

// write ignores errors, as of memory: the death signal still kills the ranks
// themselves.
func (g *guardian) write(at int, n int32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	for {
		_, err := unix.Pwrite(g.groups, b[:], int64(at)*int64(len(b)))
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
	unix.Close(g.groups)
}

// Guard is the guardian process.
func Guard() int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2)
	// An error ends the wait as an end does.
	_, _ = io.Copy(io.Discard, os.NewFile(guardPipe, "pipe"))
	groups, _ := io.ReadAll(io.NewSectionReader(os.NewFile(guardGroups, "groups"), 0, math.MaxInt64))
	for ; len(groups) >= 4; groups = groups[4:] {
		if g := int(int32(binary.NativeEndian.Uint32(groups))); g > 1 && g != os.Getpid() {
			unix.Kill(-g, unix.SIGKILL)
		}
	}
	return 0
}
