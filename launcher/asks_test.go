// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gompi/internal/control/change"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/launcher/pool"
)

// asks is the one rank of a job, which watches the main set, wants to be one of three or
// four, says of itself what that is worth, and what else when it is told to on its
// standard input, and withdraws that; then it spawns two.
func (e *elastic) asks() int {
	in := bufio.NewScanner(os.Stdin)
	e.watch(e.w.World)
	var b protocol.OpBody
	ask := func(m, body protocol.Message) { must(e.Ask(context.Background(), m, body)) }
	ask(&protocol.Submit{Request: change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{3}, Min: 3, Max: 4}, Parts: make([]protocol.SubmitPart, 1),
		COL: []byte(`{"version":1,"priority":3}`)}, &b)
	fmt.Println(b.State)
	in.Scan()
	ask(&protocol.Update{Op: b.Op, COL: []byte(`{"version":1,"priority":4}`)}, &protocol.Empty{})
	in.Scan()
	ask(&protocol.Op{Kind: protocol.KindWithdraw, Op: b.Op}, &b)
	fmt.Println(b.State)
	in.Scan()
	if _, err := e.Spawn(context.Background(), []string{os.Args[0], "rank", "child"}, 2); err != nil {
		fmt.Println(err)
	}
	return e.finalize()
}

// What a program asks for, and says of its scaling, comes to who decides: of a gompirun,
// and of a head of several jobs.
func TestManagerHears(t *testing.T) {
	for _, under := range []string{"gompirun", "head"} {
		path := filepath.Join(t.TempDir(), "manager")
		args := []string{"--slots", "8", "--manager", path, "-np", "1", "RANK", "asks"}
		if under == "head" {
			name := fmt.Sprintf("test-%x", rand.Uint64())
			h := start(t, "--head", name, "--slots", "8", "--manager", path)
			defer func() {
				h.Process.Kill()
				h.Wait()
			}()
			controltest.WaitFor(t, "a head", func() bool { _, err := pool.Ask(name); return err == nil })
			args = []string{"--to", name, "--min", "1", "-np", "1", "RANK", "asks"}
		}
		var c net.Conn
		var in *bufio.Reader
		// Heard are the events until this one.
		hear := func(want string) (heard string) {
			t.Helper()
			for !strings.Contains(heard, want) {
				l, err := in.ReadString('\n')
				if err != nil {
					t.Fatalf("%s: %v; heard %s, want %s", under, err, heard, want)
				}
				heard += l
			}
			return heard
		}
		say := func(format string, a ...any) {
			t.Helper()
			if _, err := fmt.Fprintf(c, format+"\n", a...); err != nil {
				t.Fatal(err)
			}
		}
		come := func() {
			t.Helper()
			controltest.WaitFor(t, "a manager's socket", func() (ok bool) {
				var err error
				c, err = net.Dial("unix", path)
				return err == nil
			})
			t.Cleanup(func() { c.Close() })
			secret, err := os.ReadFile(path + secretEnd)
			if err != nil {
				t.Fatal(err)
			}
			c.SetDeadline(time.Now().Add(20 * time.Second))
			in = bufio.NewReader(c)
			say(`{"version":1,"secret":%q}`, strings.TrimSpace(string(secret)))
			hear(`"hello"`)
		}
		if under == "head" {
			come() // who is first is asked whether the job may begin
		}
		cmd := command(t, args...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		out := bufio.NewReader(stdout)
		prints := func(want string) {
			t.Helper()
			if l, err := out.ReadString('\n'); l != want+"\n" {
				t.Errorf("%s: it prints %q, %v, want %q", under, l, err, want)
			}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if under == "head" {
			hear(`"event":"arrived","job":1,"size":0,"start":1`)
			say(`{"job":1,"size":1}`)
		} else {
			come()
		}
		heard := hear(`"event":"wished","job":1,"size":4,"min":3`)
		for _, want := range []string{`"job":1,"size":1`, `"priority":3`} {
			if !strings.Contains(heard, want) {
				t.Errorf("%s: heard %s, want %s", under, heard, want)
			}
		}
		prints("queued")
		fmt.Fprintln(stdin)
		hear(`"event":"told","job":1,"col":{"version":1,` + map[string]string{"gompirun": "", "head": `"min":1,`}[under] + `"priority":4}`)
		fmt.Fprintln(stdin)
		hear(`"event":"wished","job":1,"size":1`)
		prints("cancelled")
		fmt.Fprintln(stdin)
		hear(`"event":"wished","job":1,"size":3`)
		say(`{"job":1,"size":3}`)
		hear(`"event":"sized","job":1,"size":3`)
		if under == "head" {
			hear(`"event":"ended","job":1`)
		} else if _, err := io.Copy(io.Discard, in); err != nil { // it ends with the job
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", under, err)
		}
	}
}
