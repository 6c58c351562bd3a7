// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// The kernel tells of this process what it has used meanwhile, and of one that has ended
// nothing.
func TestUsedBy(t *testing.T) {
	before := usedBy(os.Getpid())
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; {
	}
	after := usedBy(os.Getpid())
	if d := after.At - before.At; before.At <= 0 || d < 20*time.Millisecond || d > time.Minute {
		t.Errorf("seen at %v, then at %v", before.At, after.At)
	}
	if d := after.CPU - before.CPU; d <= 0 || before.CPU <= 0 {
		t.Errorf("20 ms of computing have taken %v", d)
	}
	if after.Memory < 1<<20 || after.Memory > 1<<34 {
		t.Errorf("%d bytes of memory", after.Memory)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if u := usedBy(cmd.Process.Pid); u.At != 0 || u.CPU != 0 {
		t.Errorf("a process that has ended: %+v", u)
	}
}
