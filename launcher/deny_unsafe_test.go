// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// deny becomes this program with other arguments and without the right to
// bind anything to CPUs, as inside some containers. unsafe: the kernel takes
// the address of its filter.
func deny(args []string) int {
	runtime.LockOSThread()
	const number, errnoEPERM = 0, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SCHED_SETAFFINITY, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: errnoEPERM},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "deny:", err)
		return 3
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "deny:", err)
		return 3
	}
	self, err := os.Executable()
	if err == nil {
		err = unix.Exec(self, append([]string{self}, args...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "deny:", err)
	return 3
}

// Where nothing may be bound, ranks run unbound, unless --bind asks for it.
func TestBindingForbidden(t *testing.T) {
	denied := func(args ...string) result {
		cmd := command(t, args...)
		cmd.Args = append([]string{cmd.Path, "deny"}, cmd.Args[1:]...)
		return finish(t, cmd)
	}
	if r := denied("-np", "2", "RANK", "nothing"); r.status == 3 && strings.HasPrefix(r.stderr, "deny:") {
		t.Skip(r.stderr)
	} else if r.status != 0 || r.stderr != "" {
		t.Errorf("%+v", r)
	}
	// More than there are cores: these are let go later.
	if r := denied("-v", "-np", "5", "RANK", "exit", "0"); r.status != 0 || strings.Count(r.stderr, "cpus any") != 5 {
		t.Errorf("%+v", r)
	}
	if r := denied("--bind", "core", "-np", "2", "RANK", "nothing"); r.status != 1 || !strings.Contains(r.stderr, "cannot start rank 0: ") ||
		!strings.Contains(r.stderr, "--bind: sched_setaffinity: operation not permitted") {
		t.Errorf("%+v", r)
	}
}
