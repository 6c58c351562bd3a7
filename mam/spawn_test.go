// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

// spawning are changes with each strategy by which newcomers start; on one host they all
// start at once, on several in groups.
var spawning = []scenes.Scene{
	{Name: "sequential", Ranks: 3, Run: changes(mam.Config{Spawn: mam.SpawnSequential | mam.SpawnBackground})},
	{Name: "multiple", Ranks: 3, Run: changes(mam.Config{Spawn: mam.SpawnMultiple | mam.SpawnBackground, Method: mam.Pull})},
	{Name: "parallel", Ranks: 1, Run: changes(mam.Config{Spawn: mam.SpawnParallel, Placement: mam.Spread})},
	{Name: "multiplebaseline", Ranks: 2, Run: changes(mam.Config{Spawn: mam.SpawnMultiple, Process: mam.Baseline, Method: mam.RMALockall})},
	{Name: "all", Ranks: 2, Run: awaited(mam.Config{Spawn: mam.SpawnAll}, true)},
	{Name: "single", Ranks: 2, Run: awaited(mam.Config{Spawn: mam.SpawnSingle | mam.SpawnMultiple}, false)},
	{Name: "onebyone", Ranks: 1, Run: oneByOne},
}

// awaited is a program whose ranks, all of them or the first, wait in the Checkpoint that
// asks for newcomers until those are ready, though only the first rank asks; for a change
// without newcomers nobody has to.
func awaited(config mam.Config, all bool) func(context.Context, *mpi.Comm) error {
	return func(ctx context.Context, world *mpi.Comm) (err error) {
		m, role, err := mam.Init(ctx, world, config, nil)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.Finalize()) }()
		step := 0
		if err := mam.ReplicatedOne(m, "step", &step); err != nil {
			return err
		}
		for ; m.Comm().Size() < 5 && role == mam.Source; step++ {
			first := m.Comm().Rank() == 0
			if step == 3 && first {
				if err := m.SetTarget(5); err != nil {
					return err
				}
			}
			state, err := m.Checkpoint(mam.Check)
			if err != nil {
				return err
			}
			if state != mam.Pending && state != mam.Completed && step == 3 && (all || first) {
				return fmt.Errorf("rank %d has not waited: %v", m.Comm().Rank(), state)
			}
			if state != mam.NotStarted && step < 3 {
				return fmt.Errorf("rank %d is %v in step %d", m.Comm().Rank(), state, step)
			}
		}
		if role == mam.Target {
			step++
		}
		for end := -1; end < 0 || step < end; step++ {
			if n, err := mpi.AllreduceOne(m.Comm(), step, mpi.Max); err != nil || n != step {
				return fmt.Errorf("step %d beside %d: %w", step, n, err)
			}
			if end < 0 && m.Comm().Size() == 5 && m.Comm().Rank() == 0 {
				if err := m.SetTarget(2); err != nil {
					return err
				}
			}
			state, err := m.Checkpoint(mam.Check)
			if err != nil {
				return err
			}
			if state == mam.Completed && m.Comm().Size() == 2 {
				end = step
			}
		}
		return nil
	}
}

// oneByOne is a program that grows to five, by what the environment says of it, and ends.
func oneByOne(ctx context.Context, world *mpi.Comm) error {
	var d whole
	return mam.Loop(ctx, world, mam.Config{Spawn: mam.SpawnSequential}, d.register, func(m *mam.Module, iteration int) (bool, error) {
		if err := d.check(m, iteration); err != nil {
			return false, err
		}
		d.compute()
		if m.Comm().Size() == 5 {
			return true, nil
		}
		return false, m.SetTarget(5)
	})
}

var started = regexp.MustCompile(`operation \d+: (group \d+ of \d+ starts on host .*-\d in step \d, of \d, after .*)\n`)

// The order in which groups start is that of each strategy, as gompirun tells it: one rank
// on five hosts of a slot starts four groups. What is to be up has joined before.
func TestSpawnOrder(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const before = "those there before"
	for strategy, want := range map[string][]string{
		"sequential": {"0 1 0 " + before, "1 2 1 " + before, "2 3 2 " + before, "3 4 3 " + before},
		"multiple":   {"0 1 0 " + before, "1 2 0 " + before, "2 3 0 " + before, "3 4 0 " + before},
		"parallel":   {"0 1 0 " + before, "1 2 1 " + before, "2 3 1 group 0", "3 4 2 " + before},
		"all":        nil,
	} {
		t.Run(strategy, func(t *testing.T) {
			r := mpitest.Exec(t, 1, []string{self, "rank", "onebyone"}, mpitest.Flags("-v", "--pretend-hosts", "5x1", "--mam-spawn", strategy))
			if r.Status != 0 {
				t.Fatalf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
			}
			var got, lines []string
			for _, g := range want {
				f := strings.SplitN(g, " ", 4)
				lines = append(lines, fmt.Sprintf("group %s of 4 starts on host -%s in step %s, of 1, after %s", f[0], f[1], f[2], f[3]))
			}
			for _, m := range started.FindAllStringSubmatch(r.Stderr, -1) {
				got = append(got, regexp.MustCompile(`host .*(-\d) in`).ReplaceAllString(m[1], "host $1 in"))
			}
			if strategy == "multiple" { // at once
				slices.Sort(got)
			}
			if strategy == "parallel" && len(got) == 4 { // the first two of a step, in any order
				slices.Sort(got[1:])
			}
			if !slices.Equal(got, lines) {
				t.Errorf("%q, want %q\n%s", got, lines, r.Stderr)
			}
		})
	}
}
