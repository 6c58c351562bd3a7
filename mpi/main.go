// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control"
	"gompi/internal/engine"
	"gompi/internal/rollcall"
	"gompi/internal/segment"
	"gompi/internal/wait"
	"gompi/internal/wire"
	"gompi/transport"
	"gompi/transport/shm"
	"gompi/transport/tcp"
)

// Main is a program's main function: it joins the job, runs f with the world,
// and leaves the job. ctx ends when the job is being ended. An error of f is
// printed with the rank and ends the process with status 1, and so the job
// (under --ft the others go on). Main returns only when f has returned nil and
// the process was finalized.
func Main(f func(ctx context.Context, world *Comm) error) {
	p, err := Init()
	if err != nil {
		if !errors.Is(err, control.ErrEnding) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	if err := f(p.Context(), p.World()); err != nil {
		p.fail(1, err)
	}
	if err := p.Finalize(); err != nil {
		fmt.Fprintf(os.Stderr, "rank %d: %v\n", p.World().Rank(), err)
		os.Exit(1)
	}
}

// fail prints an error with the rank and ends the process. What is only the echo
// of another rank's end is not printed: gompirun says which rank was first.
func (p *Process) fail(code int, err error) {
	p.leaving("exit after an error")
	if errors.Is(err, ErrProcFailed) || errors.Is(err, ErrAborted) || p.ctx.Err() != nil {
		select {
		case <-p.ctx.Done():
			os.Exit(code)
		case <-time.After(echoWait):
		}
	}
	fmt.Fprintf(os.Stderr, "rank %d: %v\n", p.world.Rank(), err)
	os.Exit(code)
}

// echoWait is how long a failing rank waits for the news that the job is
// ending anyway.
const echoWait = time.Second

// Abort ends the whole job with an exit status; 0 becomes 1. It does not
// return. MPI 4.1 section 9.6.
func (c *Comm) Abort(code int) { c.of("Abort").proc.abort(code, "at "+engine.Caller()) }

func (p *Process) abort(code int, msg string) {
	if code == 0 {
		code = 1
	}
	if p.local {
		if p.ctl.Abort(code, msg) == nil {
			// The launcher's signal ends this process; the exit is for a
			// launcher that does not come to it.
			time.Sleep(abortGrace)
		}
		os.Exit(code)
	}
	p.ctl.Abort(code, msg)
	runtime.Goexit()
}

// Init joins the job that gompirun has started this program in; without
// gompirun the process is rank 0 of 1. One process calls it once at a time.
// MPI 4.1 section 11.2.1.
func Init() (*Process, error) {
	addr, token, ok := control.FromEnv()
	if !ok {
		return initAlone()
	}
	client, w, err := control.Dial(addr, token)
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	setMaxProcs(w.MaxProcs)
	// Siblings copy from and to this process; under yama only descendants of
	// the named process may.
	unix.Prctl(unix.PR_SET_PTRACER, uintptr(os.Getppid()), 0, 0, 0)
	b := Boot{Control: client, Welcome: w, Policy: policy(w.LocalProcs, w.UsableCPUs, w.Settings), Lost: exitLost}
	p, err := bootOS(b)
	if err != nil {
		client.Abort(1, err.Error())
		return nil, err
	}
	return p, nil
}

// exitLost ends a process whose launcher is gone: nobody would end it else.
func exitLost(why error) {
	if strings.Contains(why.Error(), "is lost") {
		fmt.Fprintln(os.Stderr, why)
		os.Exit(1)
	}
}

// defaultTransports is the order of preference.
const defaultTransports = "shm,tcp"

// bootOS opens what an operating system process has: transports, epoll and its
// page in the roll call.
func bootOS(b Boot) (*Process, error) {
	s, err := wait.NewEpoll()
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	b.Sleeper = s
	w := b.Welcome
	if w.Segment >= 0 {
		if err := segment.Check(w.Segment, w.Self); err != nil {
			return nil, fmt.Errorf("gompi: %w", err)
		}
		mem, err := segment.Map(w.Segment, segment.RollCall, segment.RollCallBytes, true)
		if err != nil {
			return nil, fmt.Errorf("gompi: roll call: %w", err)
		}
		if b.Book, err = rollcall.Open(mem); err != nil {
			return nil, fmt.Errorf("gompi: roll call: %w", err)
		}
	}
	env := transport.Env{Self: w.Self, Secret: w.Secret, Wake: s.Wake, Setting: b.setting, Segment: w.Segment, Bell: w.Bell}
	if b.Transports, err = openTransports(b.setting("GOMPI_TRANSPORT"), env, b.Control); err != nil {
		return nil, err
	}
	p, err := Start(b)
	if err != nil {
		return nil, err
	}
	p.local = true
	return p, nil
}

func openTransports(list string, env transport.Env, ctl Control) ([]transport.Transport, error) {
	forced := list != ""
	if !forced {
		list = defaultTransports
	}
	var ts []transport.Transport
	var addrs []string
	for _, name := range strings.Split(list, ",") {
		var t transport.Transport
		var err error
		switch name = strings.TrimSpace(name); name {
		case "shm":
			t, err = shm.Open(env)
		case "tcp":
			// On one host everybody is reached by shared memory: a listener
			// that nobody dials would only cost start-up time.
			if len(ts) > 0 && !forced {
				continue
			}
			var tt *tcp.Transport
			if tt, err = tcp.Open(env, tcp.Options{}); err == nil {
				t, addrs = tt, tt.Addrs()
			}
		default:
			err = fmt.Errorf("unknown; there are shm and tcp")
		}
		if err != nil {
			return nil, fmt.Errorf("gompi: transport %q: %w", name, err)
		}
		ts = append(ts, t)
	}
	// Peers wait for this before they make contact, also if there is no
	// address.
	if err := ctl.Announce(addrs); err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	return ts, nil
}

// setMaxProcs gives Go's scheduler this rank's share of the processors.
func setMaxProcs(n int) {
	if n > 0 && n != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(n)
	}
}

// initAlone is a process that nobody launched.
func initAlone() (*Process, error) {
	warnAlone()
	self := wire.ProcID{Job: 1, Serial: 1}
	w := &control.Welcome{
		Self: self, World: wire.Set{URI: "mpi://WORLD", Number: 1, Members: wire.MembersOf(self)},
		Segment: -1, Bell: -1, LocalProcs: 1, UsableCPUs: runtime.GOMAXPROCS(0), Settings: envSettings(),
	}
	s, err := wait.NewEpoll()
	if err != nil {
		return nil, fmt.Errorf("gompi: %w", err)
	}
	p, err := Start(Boot{Control: newAlone(w.World), Welcome: w, Sleeper: s, Policy: wait.ForOS(1, 2)})
	if err == nil {
		p.local = true
	}
	return p, err
}

// envSettings reads the knobs of a process without a head. A table of rules
// has nothing to decide there, and its variable names a file.
func envSettings() map[string]string {
	m := map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "GOMPI_") && k != "GOMPI_COLL_TABLE" {
			m[k] = v
		}
	}
	return m
}

// warnAlone tells once that another launcher's ranks do not know each other.
func warnAlone() {
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "SLURM_PROCID"} {
		if os.Getenv(v) != "" {
			fmt.Fprintf(os.Stderr, "gompi: %s is set, but only gompirun starts gompi ranks: this process runs alone, as rank 0 of 1\n", v)
			return
		}
	}
}
