// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"io"
	"syscall"
	"testing"

	"gompi/internal/test/testlab"
)

// What is typed reaches rank 0, up to ^D.
func TestTerminalInput(t *testing.T) {
	master, slave := testlab.Terminal(t)
	cmd := command(t, "-np", "2", "RANK", "cat")
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	io.WriteString(master, "typed\n\x04")
	if r := finish(t, cmd); r.status != 0 || r.stdout != "typed\n" {
		t.Errorf("%+v", r)
	}
}

// ^C at the terminal reaches the ranks, which are not in its foreground.
func TestTerminalInterrupt(t *testing.T) {
	master, slave := testlab.Terminal(t)
	cmd := command(t, "-np", "2", "RANK", "block")
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("blocked\nblocked\n"))); err != nil {
		t.Fatal(err)
	}
	io.WriteString(master, "\x03")
	io.Copy(io.Discard, out)
	cmd.Wait()
	if s := cmd.ProcessState.ExitCode(); s != 130 {
		t.Errorf("status %d, stderr %q", s, errs.String())
	}
}
