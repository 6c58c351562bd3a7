// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"gompi/internal/control"
	"gompi/internal/control/controltest"
)

func TestClientRefusesGarbage(t *testing.T) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@gompi-test-%d", os.Getpid()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	token := strings.Repeat("00", 16)
	for _, b := range [][]byte{
		[]byte("SSH-2.0-OpenSSH_9.6\r\n"),
		control.AppendFrame(nil, 0, 0, &control.Welcome{}),                   // without descriptors
		control.AppendFrame(nil, 0, 0, &control.Event{Kind: control.EvHost}), // not a welcome
		control.AppendFrame(nil, 0, 0, &control.Welcome{})[:40],
		nil,
	} {
		served := controltest.Async(t, func() error {
			c, err := ln.AcceptUnix()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, control.FrameHead+control.TokenBytes)); err != nil {
				return err
			}
			_, err = c.Write(b)
			return err
		})
		if _, _, err := Dial(ln.Addr().String(), token); err == nil {
			t.Errorf("joined with answer %.20q", b)
		}
		if err := served(); err != nil {
			t.Error(err)
		}
	}
}

// A process that has only half of what gompirun set is told so; it does not
// take itself for one without a job.
func TestHalfAnEnvironment(t *testing.T) {
	for _, c := range [][2]string{{control.EnvAddr, control.EnvToken}, {control.EnvToken, control.EnvAddr}} {
		t.Setenv(c[0], "@gompi-0000000000000001")
		t.Setenv(c[1], "")
		addr, token, ok := control.FromEnv()
		if !ok {
			t.Errorf("only %s set: no job", c[0])
		}
		want := c[0] + " is set in the environment, but " + c[1] + " is not"
		if _, _, err := Dial(addr, token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Dial: %v, want %s", err, want)
		}
	}
	t.Setenv(control.EnvToken, "")
	t.Setenv(control.EnvAddr, "")
	if _, _, ok := control.FromEnv(); ok {
		t.Error("a job without any variable")
	}
}
