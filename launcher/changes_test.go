// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/changepage"
	"gompi/internal/control/client"
	"gompi/internal/control/controltest"
	"gompi/internal/control/protocol"
	"gompi/internal/host/segment"
)

// elastic is a rank whose job changes: one that follows the main set by hand.
type elastic struct {
	*client.Client
	w      *protocol.Welcome
	set    wire.Set
	page   changepage.Page
	member *changepage.Member
	at     uint64
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "elastic:", err)
		os.Exit(94)
	}
}

// follow maps the page that the answer to m tells of, and returns what else it says.
func (e *elastic) follow(set wire.Set, m protocol.Message) []byte {
	var b protocol.PageBody
	fds, err := e.AskFiles(context.Background(), m, &b)
	must(err)
	if e.set = set; b.X.Bytes > 0 {
		mem, err := segment.Map(fds[0], b.X.Off, b.X.Bytes, true)
		must(err)
		e.page, err = changepage.View(mem, b.Members)
		must(err)
		e.member = e.page.Member(b.Place, 1, 1)
	}
	return b.Rest
}

func (e *elastic) watch(set wire.Set) {
	e.follow(set, &protocol.Subscribe{Set: set.Number, Options: protocol.Options{Step: 1, Lookahead: 1}})
}

// adopt checks until there is a change, and votes for it.
func (e *elastic) adopt() *protocol.ChangeBody {
	var c changepage.Change
	for c == 0 || c == changepage.Paused {
		e.at++
		if c = e.member.Check(e.at); c == 0 || c == changepage.Paused {
			unix.Poll(nil, 1)
		}
	}
	page, word := e.page, &protocol.StatusWord{Set: e.set.Number, Change: uint32(c)}
	must(e.Tell(word))
	var b protocol.ChangeBody
	rest := e.follow(wire.Set{}, &protocol.GetChange{Set: e.set.Number, Change: uint32(c)})
	must(protocol.Decode(&b, rest))
	e.set = b.Result
	if !b.Votes {
		must(e.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: b.Op}))
	} else if page.Vote(c) {
		must(e.Tell(word))
	}
	if b.Role != protocol.RoleJoining {
		e.await(b.Op, change.Committed)
	}
	return &b
}

func (e *elastic) submit(r change.Request, argv []string) protocol.OpBody {
	var b protocol.OpBody
	must(e.Ask(context.Background(), &protocol.Submit{Request: r, Parts: []protocol.SubmitPart{{Argv: argv}}}, &b))
	return b
}

func (e *elastic) await(op uint32, until change.State) protocol.OpBody {
	var b protocol.OpBody
	must(e.Ask(context.Background(), &protocol.Await{Op: op, Until: until}, &b))
	return b
}

func (e *elastic) finalize() int {
	must(e.Finalize())
	e.Close()
	return 0
}

// change is a rank of a job that grows by two, and then loses its first and last.
// What happens beside that is said by how:
//
//	CMD...       the newcomers run this, and do not come
//	kill         nothing more, so that the job can be killed
//	(none)       nothing
//	suicide      a newcomer is killed when it has joined
//	late         a newcomer exits with status 5 when the change is committed
//	exit3, hang  how leavers end
//	spare N      N of the newcomers are spares
//	stdin        a line is read by each first member
func (e *elastic) change(me int, how []string) int {
	kind := ""
	if len(how) > 0 {
		kind = how[0]
	}
	line := func() (s string) {
		b := make([]byte, 1)
		for s != "\n" && !strings.HasSuffix(s, "\n") {
			if n, err := os.Stdin.Read(b); n != 1 {
				return fmt.Sprint(s, err)
			}
			s += string(b)
		}
		return strings.TrimSpace(s)
	}
	if c := e.w.Change; c != nil {
		if kind == "suicide" && me == 1 {
			unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		must(e.Tell(&protocol.Op{Kind: protocol.KindVoted, Op: c.Op}))
		if b := e.await(c.Op, change.Committed); b.State < change.Committed || b.State > change.Done {
			return 0
		}
		if kind == "late" && me == 1 {
			return 5
		}
		if os.Getenv(protocol.EnvSpare) != "" {
			fmt.Println("taken")
		} else {
			fmt.Println("in")
		}
		e.watch(c.Result)
	} else {
		set, err := e.Lookup("gompi://main")
		must(err)
		e.watch(set)
		if kind == "stdin" && me == 0 {
			fmt.Println("read", line())
		}
		must(e.Fence(context.Background(), e.w.World.Members))
		for me == 0 && kind == "spare" && fmt.Sprint(len(childrenOf(os.Getppid()))-3) != how[1] { // beside two ranks and the guardian
			unix.Poll(nil, 1)
		}
		if me == 0 && kind == "spare" { // that they run is known a little later
			unix.Poll(nil, 300)
		}
		comes := true
		switch kind {
		case "", "late", "exit3", "hang", "stdin", "kill", "suicide", "spare":
			how = nil
			comes = kind != "suicide"
		default:
			comes = false
		}
		if me == 0 {
			op := e.submit(change.Request{Kind: change.Grow, In: []uint32{0}, Join: []int{2}}, how)
			if op.Op == 0 {
				must(errors.New(op.Text))
			}
			if !comes {
				b := e.await(op.Op, change.Done)
				fmt.Printf("%v: %s\n", b.State, b.Text)
			}
		}
		if !comes {
			must(e.Fence(context.Background(), e.w.World.Members))
			return e.finalize()
		}
		e.adopt()
	}
	if kind == "kill" {
		fmt.Println("there")
		forever()
	}
	rank := e.set.Members.Index(e.w.Self)
	if rank == 1 {
		m := e.set.Members
		e.submit(change.Request{Kind: change.Shrink, In: []uint32{0}, Out: []wire.ProcID{m.At(0), m.At(m.Len() - 1)}}, nil)
	}
	b := e.adopt()
	if b.Role == protocol.RoleLeaving {
		switch kind {
		case "exit3":
			return 3
		case "hang":
			forever()
		}
		return e.finalize()
	}
	if rank == 1 {
		e.await(b.Op, change.Done)
		if kind == "stdin" {
			fmt.Println("read", line())
		}
		unix.Poll(nil, 100) // names come to agents on a connection of their own, a little later
		fmt.Println("first")
	}
	must(e.Fence(context.Background(), e.set.Members))
	return e.finalize()
}

// TestChanges: processes come and go, and end as they may.
func TestChanges(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		stderr string
		stdout string // sorted; names of those that come may be those that they have soon
	}{
		{"-np 2 RANK change", 0, `^$`, "[0] first|in|in"},
		{"-np 4 --ft RANK change", 0, `^$`, "[0] first|in|in"},
		{"-np 2 RANK change exit3", 0, `^$`, "[0] first|in|in"},
		{"-np 2 --leave-timeout 0.3 --kill-grace 0.2 RANK change hang", 0, `^gompirun: left\.\d \(pid \d+\) and 1 more did not end in time after leaving \(--leave-timeout\), and is ended\n$`, "[0] first|in|in"},
		{"-np 2 RANK change late", 5, `^gompirun: (rank 3|new.1|process 4 .*) \(pid \d+\) exited with status 5`, "?"},

		{"-np 2 --spare 2 RANK change spare 2", 0, `^$`, "[0] first|taken|taken"},
		{"-np 2 --spare 1 RANK change spare 1", 0, `^$`, "[0] first|in|taken"},
		{"-np 2 --spare 3 RANK nothing", 0, `^$`, ""},
		{"-np 2 --spare 3 RANK good", 0, `^$`, ""},

		{"-np 2 RANK change suicide", 0, `^$`, "[0] rolled back: a process of the change died"},
		{"-np 2 --ft RANK change suicide", 0, `^$`, "[0] rolled back: a process of the change died"},
		{"-np 2 RANK change sh -c exit", 0, `^$`, "[0] rolled back: a process of the change died"},
		{"-np 2 RANK change sh -c false", 0, `^$`, "[0] rolled back: a process of the change died"},
		{"-np 2 RANK change RANK kill 9", 0, `^$`, "[0] rolled back: a process of the change died"},
		{"-np 2 RANK change /no/such/program", 0, `^$`, "[0] rolled back: no such program: /no/such/program"},
		{"-np 2 --resize-timeout 0.2 RANK change sh -c sleep\tinf", 0, `^$`, "[0] rolled back: the deadline is over"},
		{"-np 2 --slots 3 RANK change", 94, `^\[0\] elastic: more than can ever be given: 4 processes, where there can be 3\ngompirun: `, "?"},
	} {
		t.Run(c.args, func(t *testing.T) {
			args := strings.Fields(strings.ReplaceAll(c.args, "sleep\tinf", "sleep~inf"))
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "~", " ")
			}
			r := gompirun(t, append([]string{"--tag"}, args...)...)
			if r.status != c.status || !regexp.MustCompile("(?s)"+c.stderr).MatchString(r.stderr) {
				t.Errorf("status %d, stderr %q; want %d, %s", r.status, r.stderr, c.status, c.stderr)
			}
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			for i := range lines {
				lines[i] = regexp.MustCompile(`^\[\S+\] (in|taken)$`).ReplaceAllString(lines[i], "$1")
			}
			slices.Sort(lines)
			got := strings.Join(lines, "|")
			if c.stdout != "?" && !strings.HasPrefix(got, c.stdout) {
				t.Errorf("stdout %q, want %q", got, c.stdout)
			}
			if r.took > 20*time.Second {
				t.Errorf("it took %v", r.took)
			}
		})
	}
}

// Standard input moves to the new first member: what is a file as it is, and what
// gompirun forwards.
func TestStdinOfTheNewFirst(t *testing.T) { stdinMoves(t) }

func stdinMoves(t *testing.T, flags ...string) {
	cmd := command(t, append(flags, "-np", "2", "RANK", "change", "stdin")...)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close() // there is no end of it before
	cmd.Stdin = in
	out.WriteString("one\ntwo\n")
	r := finish(t, cmd)
	if r.status != 0 || !strings.Contains(r.stdout, "read one\n") || !strings.Contains(r.stdout, "read two\n") {
		t.Errorf("%+v", r)
	}
}

// The reason of a roll-back names the status or the signal of the process that died.
func TestWhyRolledBack(t *testing.T) {
	for _, c := range []struct{ program, want string }{
		{"sh -c exit~3", `rolled back: a process of the change died: new\.\d \(pid \d+\) exited with status 3`},
		{"RANK kill 9", `rolled back: a process of the change died: new\.\d \(pid \d+\) was killed by signal 9 \(SIGKILL\)`},
	} {
		args := strings.Fields("-np 2 RANK change " + c.program)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "~", " ")
		}
		if r := gompirun(t, args...); !regexp.MustCompile(c.want).MatchString(r.stdout) {
			t.Errorf("%s: %+v, want %s", c.program, r, c.want)
		}
	}
}

// A gompirun that is killed takes with it who came by a change.
func TestKilledWithNewcomers(t *testing.T) {
	r := start(t, "-np", "2", "RANK", "change", "kill")
	r.expect("in", "in", "there", "there", "there", "there")
	pids := childrenOf(r.Process.Pid)
	r.Process.Kill()
	r.end()
	if len(pids) < 4 {
		t.Errorf("only %v ran", pids)
	}
	for _, pid := range pids {
		controltest.WaitFor(t, fmt.Sprintf("end of %d", pid), func() bool { return !lives(pid) })
	}
}
