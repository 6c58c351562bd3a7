// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sessions_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/change"
	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
	"gompi/mpitest"
)

// stop is a process that waits at a point.
type stop struct {
	pid, agent int
	addr       string
	who, point string
	conn       net.Conn
}

// struck is a job whose processes stop where the test wants.
type struck struct {
	*testing.T
	cmd  *exec.Cmd
	errs written
	mark testlab.Mark
	ln   net.Listener

	mu    sync.Mutex
	holds map[string]bool // points
	stops map[net.Conn]*stop
	seen  map[string]*stop // the last of each who
	moved chan struct{}    // closed when something of these changes
}

func startStruck(t *testing.T, flags ...string) *struck {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := &struck{T: t, mark: testlab.NewMark(), holds: map[string]bool{"asks": true}, stops: map[net.Conn]*stop{}, seen: map[string]*stop{}, moved: make(chan struct{})}
	gate := filepath.Join(t.TempDir(), "gate")
	if k.ln, err = net.Listen("unix", gate); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.ln.Close() })
	go k.accept()
	flags = append([]string{"-np", "4", "--pset", "three=0-2", "--slots", "8", "--resize-timeout", "20s", "--leave-timeout", "20s"}, flags...)
	k.cmd = exec.Command(mpitest.Build(t, "gompi/cmd/gompirun"), append(flags, self, "rank", "struck")...)
	k.cmd.Env = append(os.Environ(), struckGate+"="+gate, k.mark.Env())
	k.cmd.Stderr = &k.errs
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // of a test that has ended early
		if k.cmd.ProcessState == nil {
			k.cmd.Process.Kill()
			k.cmd.Wait()
		}
	})
	k.await("asks", 1)
	k.hold("loop")
	k.await("loop", 3)
	k.release("loop")
	return k
}

func (k *struck) accept() {
	for {
		conn, err := k.ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			for in := bufio.NewScanner(conn); in.Scan(); {
				s := &stop{conn: conn}
				fmt.Sscan(in.Text(), &s.pid, &s.agent, &s.addr, &s.who, &s.point)
				k.arrives(s)
			}
			k.change(func() { delete(k.stops, conn) })
		}()
	}
}

func (k *struck) change(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
	close(k.moved)
	k.moved = make(chan struct{})
}

func (k *struck) arrives(s *stop) {
	k.change(func() {
		if k.seen[s.who] = s; k.holds[s.point] {
			k.stops[s.conn] = s
		} else {
			fmt.Fprintln(s.conn, "go")
		}
	})
}

// hold lets nobody pass the points any more.
func (k *struck) hold(points ...string) {
	k.change(func() {
		for _, p := range points {
			k.holds[p] = true
		}
	})
}

// release lets pass whoever waits, and all who come.
func (k *struck) release(points ...string) {
	k.change(func() {
		for _, p := range points {
			delete(k.holds, p)
		}
		for conn, s := range k.stops {
			if !k.holds[s.point] {
				fmt.Fprintln(conn, "go")
				delete(k.stops, conn)
			}
		}
	})
}

// await waits until so many wait at a point.
func (k *struck) await(point string, n int) (list []*stop) {
	k.Helper()
	limit := time.After(mpitest.Deadline)
	for {
		k.mu.Lock()
		list = nil
		for _, s := range k.stops {
			if s.point == point {
				list = append(list, s)
			}
		}
		moved := k.moved
		k.mu.Unlock()
		if len(list) >= n {
			return list
		}
		select {
		case <-moved:
		case <-limit:
			k.cmd.Process.Signal(unix.SIGQUIT)
			<-time.After(3 * time.Second)
			k.Fatalf("%d wait at %s, want %d: %s", len(list), point, n, k.errs.String())
		}
	}
}

// ask has the fourth rank submit a change.
func (k *struck) ask(kind string) {
	k.await("asks", 1)
	k.change(func() {
		for conn, s := range k.stops {
			if s.point == "asks" {
				fmt.Fprintln(conn, "ask", kind)
				delete(k.stops, conn)
			}
		}
	})
}

// last is the last stop of somebody.
func (k *struck) last(who string) *stop {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[who]
}

// op waits until an operation is so far, or over.
func (k *struck) op(number uint32, until change.State) (s change.State, text string) {
	k.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(mpitest.Deadline); time.Now().Before(end); <-tick.C {
		t := k.tool()
		list, _ := t.Ops(context.Background())
		t.Close()
		for i := range list {
			if list[i].Op.Op != number {
				continue
			}
			if s, text = list[i].Op.State, list[i].Op.Text+list[i].Waits; s == until || s.Over() {
				return s, text
			}
		}
	}
	k.cmd.Process.Signal(unix.SIGQUIT)
	<-time.After(3 * time.Second)
	k.Fatalf("operation %d is %v (%s), not %v\n%s", number, s, text, until, k.errs.String())
	return
}

// strike is who is killed, in which state of what change, and where that runs.
type strike struct {
	kind   string
	state  change.State
	victim string
	hosts  bool
}

func (x strike) String() string {
	return fmt.Sprint(map[bool]string{true: "hosts", false: "processes"}[x.hosts], "/", x.kind, "/", x.state, "/", x.victim)
}

func (x strike) adds() bool { return x.kind != "sub" && x.kind != "shrink" }
func (x strike) subs() bool { return x.kind == "sub" || x.kind == "shrink" || x.kind == "replace" }

// possible: there is such a victim then, and the state lasts.
func (x strike) possible() bool {
	switch x.state {
	case change.Granted: // until an agent has started the newcomers, which is held up
		if !x.hosts || !x.adds() {
			return false
		}
	case change.Launching:
		if !x.adds() {
			return false
		}
	case change.Committed:
		if !x.subs() {
			return false
		}
	}
	switch x.victim {
	case "starting newcomer":
		return x.state == change.Launching
	case "newcomer":
		return x.adds() && x.state >= change.Launching
	case "leaver":
		return x.subs()
	case "agent":
		return x.hosts
	case "agent of newcomers":
		return x.hosts && x.adds() && x.state >= change.Granted
	}
	return true
}

// end is how the change comes to its end.
func (x strike) end() change.State {
	if x.victim == "requester" || x.state == change.Queued || x.state == change.Committed {
		return change.Done
	}
	return change.RolledBack
}

var strikeStates = []change.State{change.Queued, change.Granted, change.Launching, change.Ready, change.Adopting, change.Committed}

// reach brings a change into its state, and holds it there.
func (x strike) reach(k *struck) (op uint32) {
	op = 1
	switch x.state {
	case change.Queued: // behind another one
		k.hold("joined")
		k.ask("grow")
		k.await("joined", 1)
		op = 2
	case change.Granted:
		unix.Kill(k.agentOfNewcomers(), unix.SIGSTOP)
	case change.Launching:
		k.hold(x.early())
	case change.Ready:
		k.hold("coming")
	case change.Adopting:
		k.hold("handed")
	case change.Committed:
		k.hold("left")
	}
	k.ask(x.kind)
	switch x.state {
	case change.Launching:
		k.await(x.early(), 1)
	case change.Ready:
		k.await("coming", 3)
	case change.Adopting:
		k.await("handed", 3)
	}
	if s, text := k.op(op, x.state); s != x.state {
		k.Fatalf("operation %d is %v: %s", op, s, text)
	}
	return op
}

// early is where newcomers stop before they are ready.
func (x strike) early() string {
	if x.victim == "starting newcomer" {
		return "start"
	}
	return "joined"
}

// agentOfNewcomers is that of the host where nobody else is.
func (k *struck) agentOfNewcomers() int {
	for _, pid := range (&killed{T: k.T, pids: map[int]string{}}).children(k.cmd.Process.Pid) {
		if pid != k.last("0").agent && pid != k.last("3").agent {
			return pid
		}
	}
	k.Fatal("no agent without ranks")
	return 0
}

// kill is the strike.
func (x strike) kill(k *struck) {
	pid := 0
	switch x.victim {
	case "requester":
		pid = k.last("3").pid
	case "old rank":
		pid = k.last("0").pid
	case "leaver":
		pid = k.last("2").pid
	case "starting newcomer":
		pid = k.await("start", 1)[0].pid
	case "newcomer":
		pid = k.last("newcomer").pid
	case "agent":
		pid = k.last("3").agent
	case "agent of newcomers":
		pid = k.agentOfNewcomers()
	}
	unix.Kill(pid, unix.SIGKILL)
}

// run is the life of a job: a change is struck, the next one takes all places that are
// left, and nothing remains.
func (x strike) run(t *testing.T) {
	flags := []string{"--ft"}
	if x.hosts {
		flags = append(flags, "--pretend-hosts", "3x2")
	}
	k := startStruck(t, flags...)
	op := x.reach(k)
	x.kill(k)
	if x.state == change.Granted && x.victim != "agent of newcomers" {
		unix.Kill(k.agentOfNewcomers(), unix.SIGCONT)
	}
	rest := []string{"start", "joined", "coming", "handed", "left"}
	if x.end() == change.Done {
		k.release(rest...)
	}
	if s, text := k.op(op, change.Done); s != x.end() {
		t.Errorf("the change is %v, want %v: %s\n%s", s, x.end(), text, k.errs.String())
	}
	k.release(rest...)
	k.next()
	k.end()
}

// next asks for as many as there are places: none was lost.
func (k *struck) next() {
	k.Helper()
	var last protocol.OpReport
	for range 5 { // a death may not be known yet
		t := k.tool()
		ctx, cancel := context.WithTimeout(context.Background(), mpitest.Deadline)
		list, err := t.Processes(ctx)
		if err != nil {
			k.Fatal(err)
		}
		left := 8
		for _, p := range list {
			if p.State == protocol.Joined || p.State == protocol.Starting {
				left--
			}
		}
		t.Close()
		t = k.tool()
		err = t.Resize(ctx, &protocol.Resize{By: left}, func(r *protocol.OpReport) { last = *r })
		t.Close()
		cancel()
		if err != nil {
			k.cmd.Process.Signal(unix.SIGQUIT)
			<-time.After(3 * time.Second)
			k.Fatalf("%d more: %v, %v: %s, %s\n%s", left, last.Op.State, err, last.Op.Text, last.Waits, k.errs.String())
		}
		if last.Op.State == change.Done {
			return
		}
	}
	k.Errorf("the next change is %v: %s", last.Op.State, last.Op.Text)
}

// tool connects with an agent that lives.
func (k *struck) tool() *client.Tool {
	k.Helper()
	return anyAgent(k.T, k.cmd.Process.Pid, k.addrs(), &k.errs)
}

// end ends the job, of which nothing is left then.
func (k *struck) end() {
	k.Helper()
	addrs := k.addrs()
	k.cmd.Process.Signal(unix.SIGTERM)
	k.cmd.Wait()
	k.mark.Gone(k.T, 2*time.Second, addrs...)
}

func (k *struck) addrs() (list []string) {
	job, _ := protocol.ParseAddress(k.last("0").addr)
	for host := range uint32(3) {
		list = append(list, protocol.Address(job, host))
	}
	return list
}

// TestSoakStrikes: whoever is killed in whatever state of whatever change, it comes to
// the end that the table of docs/design/026 says, places are free again, and the job
// leaves nothing.
func TestSoakStrikes(t *testing.T) {
	var all []strike
	for _, hosts := range []bool{false, true} {
		for kind := range struckKinds {
			for _, state := range strikeStates {
				for _, victim := range []string{"requester", "old rank", "leaver", "starting newcomer", "newcomer", "agent", "agent of newcomers"} {
					if x := (strike{kind, state, victim, hosts}); x.possible() {
						all = append(all, x)
					}
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b strike) int { return bytes.Compare([]byte(a.String()), []byte(b.String())) })
	n := len(all)
	if !testlab.Long() { // each victim in each state, of changes that vary
		rng := rand.New(rand.NewPCG(testlab.Seed(t), 1))
		rng.Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
		had := map[strike]bool{}
		all = slices.DeleteFunc(all, func(x strike) bool {
			y := x
			y.kind = ""
			y.hosts = false
			was := had[y]
			had[y] = true
			return was
		})
	}
	for _, x := range all {
		t.Run(x.String(), x.run)
	}
	t.Logf("%d of %d", len(all), n)
}

// TestHeadLost: with the head, or the only agent, all of the job ends at once, in each
// state of a change, also newcomers that have not joined, and spares.
func TestHeadLost(t *testing.T) {
	for _, state := range strikeStates {
		if state == change.Granted {
			continue // it does not last on one host
		}
		for _, victim := range []string{"head", "only agent"} {
			for _, spare := range []bool{false, true} {
				x := strike{kind: "replace", state: state}
				flags := []string{"--ft"}
				if victim == "only agent" {
					flags = append(flags, "--pretend-hosts", "1x8")
				}
				if spare {
					flags = append(flags, "--spare", "1")
				} else {
					x.victim = "starting newcomer"
				}
				t.Run(fmt.Sprint(state, "/", victim, "/", spare), func(t *testing.T) {
					k := startStruck(t, flags...)
					x.reach(k)
					pid := k.cmd.Process.Pid
					if victim == "only agent" {
						pid = k.last("0").agent
					}
					unix.Kill(pid, unix.SIGKILL)
					k.mark.Gone(t, testlab.Soon(2*time.Second), k.addrs()...)
					k.cmd.Wait()
				})
			}
		}
	}
}

// TestDeathEndsJob: without --ft the death of an old rank ends the job with its status,
// whatever is decided by then; that of a newcomer before the decision does not.
func TestDeathEndsJob(t *testing.T) {
	for _, x := range []strike{
		{kind: "grow", state: change.Launching, victim: "old rank"}, {kind: "shrink", state: change.Ready, victim: "leaver"},
		{kind: "replace", state: change.Adopting, victim: "old rank"}, {kind: "shrink", state: change.Committed, victim: "old rank"},
	} {
		t.Run(x.String(), func(t *testing.T) {
			k := startStruck(t)
			x.reach(k)
			x.kill(k)
			k.cmd.Wait()
			if status := k.cmd.ProcessState.ExitCode(); status != 137 || !strings.Contains(k.errs.String(), "was killed by signal 9") {
				t.Errorf("status %d: %s", status, k.errs.String())
			}
			k.mark.Gone(t, testlab.Soon(2*time.Second), k.addrs()...)
		})
	}
	for _, state := range []change.State{change.Launching, change.Ready, change.Adopting} {
		x := strike{kind: "replace", state: state, victim: "newcomer"}
		t.Run(x.String(), func(t *testing.T) {
			k := startStruck(t)
			op := x.reach(k)
			x.kill(k)
			if s, text := k.op(op, change.Done); s != change.RolledBack {
				t.Errorf("the change is %v: %s", s, text)
			}
			k.release("joined", "coming", "handed")
			k.next()
			if s := k.errs.String(); s != "" {
				t.Errorf("gompirun says %s", s)
			}
			k.end()
		})
	}
}
