// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/client"
	"gompi/internal/control/protocol"
)

// The test binary is gompirun, its guardian and the programs that it starts:
//
//	test gompirun ARGS...
//	test rank WHAT ARGS...
//	test deny ARGS...
func TestMain(m *testing.M) {
	args := os.Args[1:]
	switch {
	case IsGuardian(args):
		os.Exit(Main(args))
	case len(args) > 0 && args[0] == "gompirun":
		os.Exit(Main(args[1:]))
	case len(args) > 0 && args[0] == "gompifar": // gompirun with its agent in another process
		os.Exit(run(args[1:], startFakeHost))
	case len(args) > 1 && args[0] == "rank":
		os.Exit(rank(args[1], args[2:]))
	case len(args) > 0 && args[0] == "deny":
		os.Exit(deny(args[1:]))
	}
	os.Exit(m.Run())
}

// rank is a program under gompirun. It plays an MPI process with the control
// client where it has to.
func rank(what string, args []string) int {
	switch what {
	case "nothing":
	case "exit":
		n, _ := strconv.Atoi(args[0])
		return n
	case "kill":
		n, _ := strconv.Atoi(args[0])
		unix.Kill(os.Getpid(), unix.Signal(n))
		forever()
	case "block":
		fmt.Println("blocked")
		forever()
	case "cat":
		io.Copy(os.Stdout, os.Stdin)
	case "sum": // of standard input
		h := sha256.New()
		n, err := io.Copy(h, os.Stdin)
		fmt.Printf("%d %x %v\n", n, h.Sum(nil), err)
	case "noise": // MiB of reproducible bytes, to stdout or stderr
		mib, _ := strconv.Atoi(args[0])
		to := os.Stdout
		if len(args) > 1 {
			to = os.Stderr
		}
		w := bufio.NewWriterSize(to, 13<<10)
		noise(w, mib<<20)
		if w.Flush() != nil {
			return 1
		}
	case "lines":
		n, _ := strconv.Atoi(args[1])
		for i := range n {
			fmt.Printf("%s %d %s\n", args[0], i, strings.Repeat(args[0], i%100))
		}
	case "signals": // says which of the signals come; ends with USR2
		ch := make(chan os.Signal, 16)
		signal.Notify(ch, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT)
		fmt.Println("ready")
		for s := range ch {
			fmt.Println(unix.SignalName(s.(unix.Signal)))
			if s == unix.SIGUSR2 {
				return 0
			}
		}
	case "stubborn":
		ch := make(chan os.Signal, 16)
		signal.Notify(ch, unix.SIGTERM, unix.SIGINT)
		fmt.Println("ready")
		for s := range ch {
			fmt.Println(unix.SignalName(s.(unix.Signal)))
		}
	case "roam":
		return roam()
	case "fds": // which descriptors does a rank inherit, and which limit
		ents, _ := os.ReadDir("/proc/self/fd")
		for _, e := range ents {
			if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && e.Name() > "2" && !strings.Contains(to, "eventpoll") && !strings.Contains(to, "eventfd") && !strings.Contains(to, "/proc/") {
				fmt.Println("inherited", e.Name(), to)
			}
		}
	default:
		return mpiRank(what, args)
	}
	return 0
}

// mpiRank joins the job first.
func mpiRank(what string, args []string) int {
	addr, token, ok := protocol.FromEnv()
	if !ok {
		fmt.Fprintln(os.Stderr, "not under gompirun")
		return 99
	}
	dial := client.Dial
	spare := os.Getenv(protocol.EnvSpare) != ""
	if spare {
		dial = client.DialSpare
	}
	c, w, err := dial(addr, token)
	if err != nil && spare {
		return 0
	}
	if errors.Is(err, protocol.ErrEnding) {
		forever()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Dial:", err)
		return 98
	}
	me := w.World.Members.Index(w.Self)
	odd := me == w.World.Members.Len()-1 // the last rank is the one that fails
	ended := make(chan string, 4)
	go func() {
		for {
			ev, err := c.Next()
			switch {
			case err != nil:
				ended <- err.Error()
				return
			case ev.Kind == protocol.EvDied:
				c.Dead(ev.Proc)
				ended <- ev.Text
			case ev.Kind == protocol.EvGone:
				ended <- ev.Text
			case ev.Kind == protocol.EvStacks:
				c.Stacks(protocol.Stacks{ID: ev.ID, Queues: []byte("queue of " + strconv.Itoa(me)), Stacks: []byte("stack of " + strconv.Itoa(me))})
			}
		}
	}()
	fence := func() {
		err := c.Fence(context.Background(), w.World.Members)
		if gone := (*protocol.GoneError)(nil); errors.Is(err, protocol.ErrEnding) || errors.As(err, &gone) {
			forever() // gompirun says why, and ends us
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "Fence:", err)
			os.Exit(97)
		}
	}
	finalize := func() {
		if err := c.Finalize(); err != nil {
			fmt.Fprintln(os.Stderr, "Finalize:", err)
			os.Exit(96)
		}
		c.Close()
	}
	switch what {
	case "asks":
		return (&elastic{Client: c, w: w}).asks()
	case "change":
		return (&elastic{Client: c, w: w}).change(me, args)
	case "good":
		fence()
		finalize()
	case "report":
		fmt.Println(me, w.World.Members.Len(), w.MaxProcs, w.Settings["GOMPI_EAGER"], w.FaultTolerant)
		finalize()
	case "nofinalize":
		fence()
		if !odd {
			forever()
		}
	case "become": // another program
		fence()
		if odd {
			fmt.Println(unix.Exec("/bin/sleep", []string{"sleep", "60"}, os.Environ()))
		}
		forever()
	case "wait":
		fence()
		fmt.Println("joined")
		forever()
	case "mourn": // waits for a death
		c.Watch(w.World.Members)
		fence()
		fmt.Println("joined")
		fmt.Println(<-ended)
		finalize()
	case "die": // the last rank is killed, the others end in order
		c.Watch(w.World.Members)
		fence()
		if odd {
			unix.Kill(os.Getpid(), unix.SIGKILL)
		}
		fmt.Println(<-ended)
		finalize()
	case "abort":
		fence()
		if odd {
			code, _ := strconv.Atoi(args[0])
			c.Abort(code, "enough")
		}
		forever()
	case "idle": // may end at any moment, as Main has it
		fence()
		if err := c.Say(&protocol.Empty{Kind: protocol.KindIdle}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	case "late": // a non-zero status after Finalize
		finalize()
		if odd {
			return 7
		}
		forever()
	case "parent":
		s, err := c.Spawn(context.Background(), []string{os.Args[0], "rank", "child"}, 3)
		if err != nil {
			fmt.Fprintln(os.Stderr, "Spawn:", err)
			return 1
		}
		fmt.Println("spawned", s.Members.Len())
		finalize()
	case "spawns": // two processes of the command line given
		if _, err := c.Spawn(context.Background(), args, 2); err != nil {
			fmt.Fprintln(os.Stderr, "Spawn:", err)
			return 1
		}
		finalize()
	case "churn": // grows and shrinks; gompirun must not grow
		open := func() int {
			fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", os.Getppid()))
			return len(fds)
		}
		before := open()
		for range 60 {
			s, err := c.Spawn(context.Background(), []string{os.Args[0], "rank", "child"}, 1)
			if err != nil {
				fmt.Fprintln(os.Stderr, "Spawn:", err)
				return 1
			}
			c.Watch(s.Members)
			<-ended
		}
		// They have left, but not all have exited; no event tells of another
		// process's descriptors.
		for i := 0; open() > before+4; i++ {
			if i == 1000 {
				fmt.Println("descriptors of gompirun:", before, "and then", open())
				break
			}
			unix.Poll(nil, 10)
		}
		finalize()
	case "badparent":
		_, err := c.Spawn(context.Background(), []string{"/no/such/program"}, 3)
		fmt.Println("error:", err != nil)
		finalize()
	case "child":
		fmt.Println("child", me, w.World.Members.Len(), w.Parent.Members.Len())
		fence()
		finalize()
	default:
		fmt.Fprintln(os.Stderr, "unknown rank", what)
		return 95
	}
	return 0
}

// noise writes n bytes that are the same every time: text with lines of all
// lengths, and bytes that are no text.
func noise(w io.Writer, n int) {
	var buf [4096]byte
	x := uint32(1)
	for n > 0 {
		for i := range buf {
			x = x*1664525 + 1013904223
			buf[i] = byte(x >> 24)
			if x>>8&0xff < 3 {
				buf[i] = '\n'
			}
		}
		w.Write(buf[:min(n, len(buf))])
		n -= len(buf)
	}
}

// result is what a gompirun that has ended left.
type result struct {
	status         int
	stdout, stderr string
	took           time.Duration
}

// command is gompirun with these arguments; "RANK" stands for the helper
// program. It is killed when the test takes too long.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	full := []string{"gompirun"}
	if strings.HasPrefix(t.Name(), "TestFar") {
		full[0] = "gompifar"
	}
	if strings.HasPrefix(t.Name(), "TestPretended") {
		full = append(full, "--"+fakeHostsFlag, "2x1")
	}
	for _, a := range args {
		if a == "RANK" {
			full = append(full, self, "rank")
			continue
		}
		full = append(full, a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self, full...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func gompirun(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	status := cmd.ProcessState.ExitCode()
	if ws := cmd.ProcessState.Sys().(interface{ Signaled() bool }); ws.Signaled() {
		t.Fatalf("gompirun was killed: %v; stderr: %s", cmd.ProcessState, errs.String())
	}
	return result{status, out.String(), errs.String(), time.Since(start)}
}

// forever blocks. An empty select would do with cgo; without it the runtime
// sees that nobody can ever wake the program, and ends it.
func forever() {
	for {
		<-time.After(time.Hour)
	}
}
