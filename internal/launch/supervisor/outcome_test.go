// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/launch"
)

func TestJudge(t *testing.T) {
	in, out := controlState{joined: true}, controlState{joined: true, finalized: true}
	for _, c := range []struct {
		e    launch.Ending
		s    controlState
		why  string
		code int
	}{
		{launch.Ending{}, controlState{}, "", 0},
		{launch.Ending{}, out, "", 0},
		{launch.Ending{}, in, "exited without calling Finalize", 1},
		{launch.Ending{}, controlState{othersJoined: true}, "exited with status 0 without calling Init, and other ranks wait for it", 1},
		{launch.Ending{Code: 3}, in, "exited with status 3", 3},
		{launch.Ending{Code: 3}, out, "exited with status 3", 3},
		{launch.Ending{Signal: unix.SIGKILL}, in, "was killed by signal 9 (SIGKILL)", 137},
		{launch.Ending{Signal: unix.SIGSEGV, Core: true}, controlState{}, "was killed by signal 11 (SIGSEGV), core dumped", 139},
		{launch.Ending{Signal: 40}, out, "was killed by signal 40", 168},
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
