// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

const envHold = "SEGMENT_TEST_HOLD"

// One process at a time has the turn, also if the others are goroutines of it,
// and one that dies loses it.
func TestTurn(t *testing.T) {
	if os.Getenv(envHold) != "" {
		var m Memory
		m.awaitHostLock(1)
		os.Stdout.WriteString("held\n")
		io.Copy(io.Discard, os.Stdin)
		return
	}
	var a, b Memory
	defer a.Close()
	defer b.Close()
	if !a.open() {
		t.Skip("no /proc/meminfo here")
	}
	end := a.awaitHostLock(1)
	if b.lock() {
		t.Error("two have the turn")
	}
	if a.hostLock.TryLock() {
		t.Error("two of one process have the turn")
	}
	if b.awaitHostLock(1)(); b.lock() {
		t.Error("who went on without the turn ends that of another")
	}
	end()

	cmd := exec.Command(os.Args[0], "-test.run=^TestTurn$")
	cmd.Env = append(os.Environ(), envHold+"=1")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if b.lock() {
		t.Error("another process has no turn of its own")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if !b.lock() {
		t.Error("a process that died keeps the turn")
	}
}
