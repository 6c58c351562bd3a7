// SPDX-License-Identifier: Apache-2.0

package spawner

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// GuardianArg as the first argument makes gompirun a guardian.
const GuardianArg = "--gompirun-guardian"

// Guardian is gompirun's handle of a guardian process. The guardian waits for the end of a
// pipe, which means that gompirun has ended. Then it kills the process groups that are
// left, which it finds in a file of numbers. The death signal alone would miss the
// children of ranks.
type Guardian struct {
	pid    int
	pipe   int // write end; nothing is written to it
	groups int // a memfd of 32-bit group ids; 0 marks a free entry

	mu   sync.Mutex
	free numbers
	at   map[int]int // index in the file by group id
}

// Descriptors of the guardian beside standard output and error.
const (
	guardPipe   = 0
	guardGroups = 3
	guardLease  = 4 // optional
)

// StartGuardian starts a guardian process. null is /dev/null. The guardian keeps the
// descriptor lease open until no process of its groups runs; 0: there is no lease.
func StartGuardian(null, lease int) (*Guardian, error) {
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
	files := []uintptr{guardPipe: uintptr(p[0]), 1: uintptr(null), 2: uintptr(null), guardGroups: uintptr(groups)}
	if lease != 0 {
		files = append(files, uintptr(lease))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"gompirun", GuardianArg}, &syscall.ProcAttr{
		Env: []string{"GOMAXPROCS=1", "GOGC=off"},
		// A session of its own lets it survive the terminal.
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		unix.Close(groups)
		unix.Close(p[1])
		return nil, fmt.Errorf("cannot start the guardian process from /proc/self/exe: %w", err)
	}
	return &Guardian{pid: pid, pipe: p[1], groups: groups, at: map[int]int{}}, nil
}

// Add records a live group. It does not wake the guardian.
func (g *Guardian) Add(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at[pgid] = g.free.take()
	g.write(g.at[pgid], int32(pgid))
}

// Remove forgets a group. It must be called before the leader of the group is reaped:
// afterwards another group may get the number.
func (g *Guardian) Remove(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at, ok := g.at[pgid]; ok {
		g.write(at, 0)
		g.free.put(at)
		delete(g.at, pgid)
	}
}

// write ignores errors, such as lack of memory: the death signal still kills the ranks
// themselves.
func (g *Guardian) write(at int, n int32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(n))
	for {
		_, err := unix.Pwrite(g.groups, b[:], int64(at)*int64(len(b)))
		if err != unix.EINTR {
			return
		}
	}
}

// Stop ends the guardian when no group is left.
func (g *Guardian) Stop() {
	unix.Kill(g.pid, unix.SIGKILL)
	reap(g.pid)
	unix.Close(g.pipe)
	unix.Close(g.groups)
}

// Guard runs the guardian process and returns its exit status.
func Guard() int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2)
	// An error ends the wait as the end of the pipe does.
	_, _ = io.Copy(io.Discard, os.NewFile(guardPipe, "pipe"))
	text, _ := io.ReadAll(io.NewSectionReader(os.NewFile(guardGroups, "groups"), 0, math.MaxInt64))
	groups := map[int]bool{}
	for ; len(text) >= 4; text = text[4:] {
		if g := int(int32(binary.NativeEndian.Uint32(text))); g > 1 && g != os.Getpid() {
			groups[g] = true
			unix.Kill(-g, unix.SIGKILL)
		}
	}
	if _, err := unix.FcntlInt(guardLease, unix.F_GETFD, 0); err == nil {
		for end := time.Now().Add(leaseWait); runs(groups) && time.Now().Before(end); {
			time.Sleep(leasePoll)
		}
	}
	return 0
}

// leaseWait is how long the guardian holds a lease for processes that do not end after
// SIGKILL, and leasePoll the interval of its checks.
const (
	leaseWait = 10 * time.Second
	leasePoll = 5 * time.Millisecond
)

// runs reports whether a process of these groups still runs. Zombies do not count.
func runs(groups map[int]bool) bool {
	procs, err := os.ReadDir("/proc")
	for _, p := range procs {
		if c := p.Name()[0]; c < '0' || c > '9' {
			continue
		}
		text, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue // the process has ended
		}
		// PID (NAME) STATE PARENT GROUP, where NAME may be anything.
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(f) < 3 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		if g, err := strconv.Atoi(f[2]); err == nil && groups[g] {
			return true
		}
	}
	return err != nil // unknown: assume that one runs
}
