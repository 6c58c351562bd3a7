// SPDX-License-Identifier: Apache-2.0

package examples_test

import (
	"fmt"
	"strings"
	"testing"

	"gompi/mpitest"
)

// The programs on package mam, in each way in which others change their size.

// resized is what a line tells of a change.
func (r *running) resized(what string, from, to int) {
	r.t.Helper()
	r.next(fmt.Sprintf(`^%s [0-9]+.*: %d ranks, %d before; the change took \S+$`, what, to, from))
}

// rest is what a job prints until its end.
func (r *running) rest() string {
	var b strings.Builder
	for r.lines.Scan() {
		fmt.Fprintln(&b, r.lines.Text())
	}
	return b.String()
}

func solved(t *testing.T, ranks int, out string) {
	t.Helper()
	match(t, out, fmt.Sprintf(`(?m)^ranks +%d, `, ranks))
	if n := number(t, match(t, out, `(?m)^iterations +([0-9]+)$`)[0]); n < 225 || n > 240 {
		t.Errorf("%g iterations, expected about 232", n)
	}
	for _, r := range match(t, out, `(?m)^residual +(\S+), recomputed (\S+)$`) {
		if number(t, r) >= 1e-10 {
			t.Errorf("residual %s", r)
		}
	}
	if e := match(t, out, `(?m)^error +(\S+) = `)[0]; number(t, e) >= 1e-8 {
		t.Errorf("error %s", e)
	}
}

// The solver goes on with its matrix and vectors wherever they are.
func TestCGResized(t *testing.T) {
	r := start(t, "cg", "--pause", "10ms", matrix)
	r.resize("+3", 2, 5)
	r.resized("iteration", 2, 5)
	r.resize("=1", 5, 1)
	r.resized("iteration", 5, 1)
	solved(t, 1, r.rest())
	out := mpitest.Exec(t, 2, []string{mpitest.Build(t, "gompi/examples/cg"), "--pause", "5ms", matrix}, mpitest.Flags("--schedule", "0.2s:=4"))
	if out.Status != 0 || out.Stderr != "" {
		t.Fatalf("status %d: %s", out.Status, out.Stderr)
	}
	match(t, out.Stdout, `(?m)^iteration [0-9]+, residual \S+: 4 ranks, 2 before; the change took \S+$`)
	solved(t, 4, out.Stdout)
}

// The water is the same to the bit, whoever computes it.
func TestSWE(t *testing.T) {
	const end = `(?m)^([0-9]+) steps to time [0-9.]+, ([0-9]+) cells by %d ranks, checksum ([0-9a-f]{16}), water lost (\S+)$`
	for _, refine := range []string{"0", "2"} {
		args := []string{"--wide", "7", "--high", "5", "--base", "8", "--phases", "2", "--steps", "90", "--refine", refine}
		sum := ""
		same := func(t *testing.T, ranks int, out string) {
			t.Helper()
			m := match(t, out, fmt.Sprintf(end, ranks))
			if lost := number(t, m[3]); m[0] != "180" || lost > 1e-12 || sum != "" && m[2] != sum {
				t.Errorf("refined %s times: %v, want checksum %s", refine, m, sum)
			}
			sum = m[2]
		}
		each(t, "swe", args, same)
		if refine == "0" {
			out := mpitest.Exec(t, 3, append([]string{mpitest.Build(t, "gompi/examples/swe"), "--pause", "5ms"}, args...), mpitest.Flags("--schedule", "0.2s:-2,0.4s:+3"))
			if out.Status != 0 || out.Stderr != "" {
				t.Fatalf("status %d: %s", out.Status, out.Stderr)
			}
			same(t, 4, out.Stdout)
			continue
		}
		r := start(t, "swe", append(args, "--pause", "8ms")...)
		r.resize("+3", 2, 5)
		r.resized("step", 2, 5)
		r.resize("=1", 5, 1)
		rest := r.rest()
		match(t, rest, `(?m)^step [0-9]+: 1 ranks, 5 before; the change took \S+$`)
		same(t, 1, rest)
		out := mpitest.Exec(t, 1, append([]string{mpitest.Build(t, "gompi/examples/swe"), "--grow"}, args...))
		if out.Status != 0 || out.Stderr != "" {
			t.Fatalf("status %d: %s", out.Status, out.Stderr)
		}
		same(t, 2, out.Stdout)
		match(t, out.Stdout, `(?m)^ +2 +2 +[0-9]+ +[0-9.]+ +-?[0-9.]+ +[0-9.]+  (never|[0-9.]+ phases)$`)
	}
}
