// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// The test binary started with childEnv set is another process of the job: it
// prints its address and echoes what it gets.
const childEnv = "GOMPI_TCP_TEST_CHILD"

const testJob = wire.JobID(0x1122334455667788)

func testProc(serial uint32) wire.ProcID { return wire.ProcID{Job: testJob, Serial: serial} }

func testEnv(serial uint32) transport.Env {
	env := transport.Env{Self: testProc(serial), Segment: -1, Bell: -1, Setting: os.Getenv}
	copy(env.Secret[:], "the secret of the jobs in tests")
	return env
}

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := echo(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What a message asks of the child: header word 0. Word 1 is a size.
const (
	askEcho = iota + 1 // send it back
	askTake            // accept the offer in the payload, then offer as much back
	askPour            // send messages without end
)

// echo serves its first caller until that is gone.
func echo() error {
	t, err := Open(testEnv(2), Options{})
	if err != nil {
		return err
	}
	fmt.Println(t.Addrs()[0])
	ev := make([]transport.Event, 16)
	buf := make([]byte, 64<<20)
	var desc [transport.MaxDesc]byte
	var pour []byte
	h := new(wire.Header)
	for {
		for _, e := range ev[:t.Poll(ev)] {
			switch e.Kind {
			case transport.EvRecv:
				switch e.Header[0] {
				case askEcho:
					t.Send(e.Slot, &e.Header, e.Payload, 0)
				case askTake:
					if err := t.Accept(e.Slot, e.Payload, buf[:e.Header[1]], 7); err != nil {
						return err
					}
				case askPour:
					pour = make([]byte, e.Header[1])
				}
			case transport.EvBulk:
				if e.Err == nil && e.Token == 7 {
					n, err := t.Offer(e.Slot, buf[:e.Bytes], 8, desc[:])
					if err != nil {
						return err
					}
					*h = wire.Header{askTake, uint64(e.Bytes)}
					t.Send(e.Slot, h, desc[:n], 0)
				}
			case transport.EvDown:
				return t.Close()
			}
		}
		if pour != nil {
			*h = wire.Header{askPour, h[1] + 1}
			for t.Send(0, h, pour, 0) == transport.Sent {
				h[1]++
			}
			h[1]--
		}
	}
}

// startChild starts a child and returns how to reach it.
func startChild(tb testing.TB) (*exec.Cmd, wire.Contact) {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatalf("child: %v", err)
	}
	return cmd, wire.Contact{Proc: testProc(2), Segment: -1, Bell: -1, Addrs: []string{strings.TrimSpace(addr)}}
}
