// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestJudge(t *testing.T) {
	in, out := standing{joined: true}, standing{joined: true, finalized: true}
	for _, c := range []struct {
		e    ending
		s    standing
		why  string
		code int
	}{
		{ending{}, standing{}, "", 0},
		{ending{}, out, "", 0},
		{ending{}, in, "exited without calling Finalize", 1},
		{ending{}, standing{othersJoined: true}, "exited with status 0 without calling Init, and other ranks wait for it", 1},
		{ending{code: 3}, in, "exited with status 3", 3},
		{ending{code: 3}, out, "exited with status 3", 3},
		{ending{signal: unix.SIGKILL}, in, "was killed by signal 9 (SIGKILL)", 137},
		{ending{signal: unix.SIGSEGV, core: true}, standing{}, "was killed by signal 11 (SIGSEGV), core dumped", 139},
		{ending{signal: 40}, out, "was killed by signal 40", 168},
	} {
		why, code, ok := judge(c.e, c.s)
		if why != c.why || code != c.code || ok != (c.why == "") {
			t.Errorf("judge(%+v, %+v) = %q, %d, %v", c.e, c.s, why, code, ok)
		}
	}
}

func TestAbortStatus(t *testing.T) {
	for code, want := range map[int]int{0: 1, 5: 5, 255: 255, 256: 1, 257: 1, -1: 255} {
		if got := abortStatus(code); got != want {
			t.Errorf("abortStatus(%d) = %d, want %d", code, got, want)
		}
	}
}
