// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rma_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/rma"
)

// deny forbids a system call to all threads of this process, as some containers
// do. unsafe: the kernel takes the address of its filter.
func deny(call uint32) error {
	const number, refuse = 0, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: refuse},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// deniedRank accesses memory of the next rank in all ways, and sends it large
// messages. what says which copies by the kernel are forbidden, and whether that
// holds for all ranks.
func deniedRank(w *mpi.Comm, what string) error {
	call, who, _ := strings.Cut(what, " ")
	if who == "all" || w.Rank() == 0 {
		number := map[string]uint32{"read": unix.SYS_PROCESS_VM_READV, "write": unix.SYS_PROCESS_VM_WRITEV}[call]
		if err := deny(number); err != nil {
			fmt.Println("cannot be forbidden here:", err)
			return nil
		}
	}
	const n = 1 << 17
	next, before := (w.Rank()+1)%w.Size(), (w.Rank()+w.Size()-1)%w.Size()
	mem, buf := make([]int64, n), make([]int64, n)
	for i := range buf {
		buf[i] = int64(w.Rank()*n + i)
	}
	win, err := rma.Create(w, mem)
	if err != nil {
		return err
	}
	want := func(what string, b []int64, rank, factor int) error {
		for i, v := range b {
			if v != int64(factor*(rank*n+i)) {
				return fmt.Errorf("%s: element %d is %d", what, i, v)
			}
		}
		return nil
	}
	back := make([]int64, n)
	for _, step := range []func() error{
		func() error { return rma.Put(win, buf, next, 0) },
		func() error { return want("put", mem, before, 1) },
		func() error { return rma.Get(win, back, next, 0) },
		func() error {
			return errors.Join(want("get", back, w.Rank(), 1), rma.Accumulate(win, buf, next, 0, mpi.Sum))
		},
		func() error { return want("accumulate", mem, before, 2) },
		func() error { _, err := mpi.Sendrecv(w, buf, next, 0, back, before, 0); return err },
		func() error { return want("message", back, before, 1) },
	} {
		if err := errors.Join(win.Fence(0), step(), win.Fence(0)); err != nil {
			return err
		}
	}
	fmt.Println("checked")
	return win.Free()
}

// TestDenied: the kernel may forbid copies in one direction alone, to all ranks
// or one: what it does not allow goes another way.
func TestDenied(t *testing.T) {
	ofProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"write all", "write one", "read all", "read one"} {
		t.Run(what, func(t *testing.T) {
			r := mpitest.Exec(t, 2, []string{self, "rank", "denied", what}, mpitest.Env("GOMPI_TRANSPORT=shm"))
			if strings.Contains(r.Stdout, "cannot be forbidden") {
				t.Skip(r.Stdout)
			}
			if r.Status != 0 || strings.Count(r.Stdout, "checked") != 2 {
				t.Fatalf("%+v", r)
			}
		})
	}
}
