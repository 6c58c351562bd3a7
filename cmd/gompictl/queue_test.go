// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gompi/launcher/pool"
	"gompi/launcher/rm"
)

// queue shows the jobs of a head, and says so if there is none.
func TestQueue(t *testing.T) {
	name := fmt.Sprintf("test-%x", rand.Uint64())
	ask := func(args ...string) string {
		var out strings.Builder
		if err := run(context.Background(), append([]string{"queue"}, args...), terminal{out: &out}); err != nil {
			return err.Error()
		}
		return out.String()
	}
	if got := ask(name); !strings.HasPrefix(got, "there is no head "+name) {
		t.Errorf("of no head: %s", got)
	}
	if got := ask("a", "b"); !strings.Contains(got, "one head") {
		t.Errorf("of two heads: %s", got)
	}
	s, err := pool.Listen(name, "fifo", rm.NewShared(rm.Config{Policy: rm.FIFO{}}), 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go s.Serve()
	l, _, err := pool.Join(name, pool.Wants{Job: "00000000000000ab", Program: "solver", Start: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got := ask(name); !strings.HasPrefix(got, "head "+name+": 2 of 2 slots are taken, fifo decides\n") || !strings.Contains(got, "00000000000000ab  solver") {
		t.Errorf("queue:\n%s", got)
	}
	if got := ask(); !strings.Contains(got, "head "+name) {
		t.Errorf("all queues:\n%s", got)
	}
}
