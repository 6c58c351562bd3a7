// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gompi/internal/test/scenes"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
)

const ctlEnv = "MAM_TEST_GOMPICTL"

var outside = scenes.Scene{Name: "resized", Run: resized}

// resized is a program that changes its size by gompictl, which its first rank runs.
func resized(ctx context.Context, world *mpi.Comm) error {
	ctl := os.Getenv(ctlEnv)
	var d whole
	asked := 0
	return mam.Loop(ctx, world, mam.Config{Method: mam.Pull}, d.register, func(m *mam.Module, iteration int) (bool, error) {
		if err := d.check(m, iteration); err != nil {
			return false, err
		}
		if err := m.Comm().Barrier(); err != nil {
			return false, err
		}
		if size := m.Comm().Size(); size == 3 {
			if m.Role() == mam.Source && m.Comm().Rank() == 0 {
				fmt.Println("the end")
			}
			return true, nil
		} else if m.Role() == mam.Source && m.Comm().Rank() == 0 && asked != size {
			asked = size
			to := map[int]string{2: "+3", 5: "=3"}[size]
			cmd := exec.CommandContext(ctx, ctl, "resize", os.Getenv("GOMPI_JOB"), to)
			if err := cmd.Start(); err != nil {
				return false, err
			}
			go cmd.Wait()
		}
		d.compute()
		return false, nil
	})
}

// A program that knows nothing of it is resized from outside, and what has been chosen is
// told with -v, with who has said it.
func TestResizeFromOutside(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := mpitest.Exec(t, 2, []string{self, "rank", "resized"},
		mpitest.Env(ctlEnv+"="+mpitest.Build(t, "gompi/cmd/gompictl"), "MAM_RED_STRATS=WAIT_TARGETS", "GOMPI_MAM_SPAWN_METHOD=merge"),
		mpitest.Flags("-v", "--mam-placement", "compact"))
	if r.Status != 0 || r.Stdout != "the end\n" {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	const want = "mam: Process=merge (gompirun), Spawn=auto (auto), Placement=compact (gompirun), Method=pull (code), Strategy=wd (MAM_RED_STRATS)\n"
	if strings.Count(r.Stderr, want) != 1 {
		t.Errorf("told:\n%s", r.Stderr)
	}
}
