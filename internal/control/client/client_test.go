// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
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
		protocol.ShortFrame(0, 0, &protocol.Welcome{}),                    // without descriptors
		protocol.ShortFrame(0, 0, &protocol.Event{Kind: protocol.EvHost}), // not a welcome
		protocol.ShortFrame(0, 0, &protocol.Welcome{})[:40],
		nil,
	} {
		served := controltest.Async(t, func() error {
			c, err := ln.AcceptUnix()
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, protocol.FrameHead+protocol.TokenBytes)); err != nil {
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

// A gompirun of another protocol has said what it can: this end names both, and what is to be
// built anew. What one says that knows this end's version comes out as it is.
func TestAnotherProtocol(t *testing.T) {
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("@gompi-test-version-%d", os.Getpid()), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	answer := func(b []byte) func() error {
		return controltest.Async(t, func() error {
			c, err := ln.AcceptUnix()
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write(b)
			c.CloseWrite()
			io.Copy(io.Discard, c)
			return err
		})
	}
	own := fmt.Sprintf(" has gompi %s, protocol %d", version.Gompi(), wire.Protocol)
	for _, c := range []struct {
		bye  []byte
		want []string // %s: who
	}{
		{protocol.ByeTo(7, "protocol error: frame has version 9, not 7"), []string{"gompirun has gompi (unknown build), protocol 7, but %s" + own + ": rebuild gompirun "}},
		{protocol.ByeTo(250, "?"), []string{"%s" + own + ", but gompirun has gompi (unknown build), protocol 250: rebuild %s "}},
		{protocol.ByeTo(wire.Protocol, "gompirun has gompi v9.9.9"), []string{"gompirun has gompi v9.9.9"}},
	} {
		check := func(who string, err error) {
			t.Helper()
			for _, want := range c.want {
				if want = strings.ReplaceAll(want, "%s", who); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v; want %q", err, want)
				}
			}
		}
		served := answer(c.bye)
		_, _, err := Dial(ln.Addr().String(), strings.Repeat("00", 16))
		check("this program", err)
		if err := served(); err != nil {
			t.Error(err)
		}
		served = answer(c.bye)
		tool, err := DialTool(context.Background(), ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = tool.Ops(context.Background())
		check("this gompictl", err)
		tool.Close()
		if err := served(); err != nil {
			t.Error(err)
		}
	}
}

// A process that has only half of what gompirun set is told so; it does not
// take itself for one without a job.
func TestHalfAnEnvironment(t *testing.T) {
	for _, c := range [][2]string{{protocol.EnvAddr, protocol.EnvToken}, {protocol.EnvToken, protocol.EnvAddr}} {
		t.Setenv(c[0], "@gompi-0000000000000001")
		t.Setenv(c[1], "")
		addr, token, ok := protocol.FromEnv()
		if !ok {
			t.Errorf("only %s set: no job", c[0])
		}
		want := c[0] + " is set in the environment, but " + c[1] + " is not"
		if _, _, err := Dial(addr, token); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Dial: %v, want %s", err, want)
		}
	}
	t.Setenv(protocol.EnvToken, "")
	t.Setenv(protocol.EnvAddr, "")
	if _, _, ok := protocol.FromEnv(); ok {
		t.Error("a job without any variable")
	}
}
