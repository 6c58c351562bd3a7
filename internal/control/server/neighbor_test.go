// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"gompi/internal/base/wire"
	"gompi/internal/control/agent"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
)

// neighborOf calls a rig as the head of job 99, and shows a port.
func neighborOf(r *rig, port string) (net.Conn, error) {
	r.t.Helper()
	conn, err := agent.Call(context.Background(), r.Server.job)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { conn.Close() })
	var answer protocol.Greet
	if err = greetOver(conn, &protocol.Greet{Job: 99, Port: port}, &answer); err == nil && answer.Job != r.Server.job {
		err = fmt.Errorf("job %d answers", answer.Job)
	}
	return conn, err
}

// Who knows no port is no neighbor, and one that says what makes no sense is dropped: of
// what it said nothing is left.
func TestHostileNeighbor(t *testing.T) {
	r := newRig(t, 2, nil)
	a := r.join(0)
	r.join(1)
	var b protocol.ValueBody
	if err := a.Ask(t.Context(), &protocol.Port{}, &b); err != nil {
		t.Fatal(err)
	}
	port := string(b.Val)
	before := r.Sizes()
	for _, wrong := range []string{"", "gompi-port:", port[:len(port)-1], strings.Repeat("x", 1000)} {
		if _, err := neighborOf(r, wrong); err == nil {
			t.Fatalf("with port %q", wrong)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 50 {
		conn, err := neighborOf(r, port)
		if err != nil {
			t.Fatal(err)
		}
		pick := func(n int) wire.ProcID {
			return wire.ProcID{Job: []wire.JobID{99, r.Server.job, 7}[rng.IntN(n)], Serial: uint32(rng.IntN(4))}
		}
		for range 20 {
			m := protocol.JobMessage{Kind: protocol.JobMessageKind(1 + rng.IntN(int(protocol.JobDisconnected))), ID: uint64(rng.IntN(3)), By: pick(3), Proc: pick(3), Number: uint32(rng.IntN(3)), Port: port, Text: "t", Addrs: []string{"127.0.0.1:1"}}
			m.Members = wire.NewMembers(wire.Range{First: pick(2).Next(1), Count: 1 + rng.IntN(3)})
			if _, err := conn.Write(protocol.ShortFrame(0, 0, &m)); err != nil {
				break // it was dropped
			}
			if round%5 == 0 {
				ctx, cancel := context.WithCancel(t.Context())
				met := make(chan error, 1)
				go func() {
					met <- a.Ask(ctx, &protocol.Connect{Port: port, Accepts: true, Members: r.world.Members}, new(protocol.ConnectBody))
				}()
				cancel()
				<-met
			}
		}
		conn.Close()
	}
	controltest.WaitFor(t, "no neighbors", func() bool {
		s := r.Sizes()
		return s["neighbors"] == 0 && s["strangers"] == 0 && s["at ports"] == before["at ports"] && s["requests"] == before["requests"]
	})
	if err := a.Ask(t.Context(), &protocol.Port{Close: port}, &b); err != nil {
		t.Fatal(err)
	}
}
