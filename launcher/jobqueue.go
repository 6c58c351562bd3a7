// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gompi/internal/control/protocol"
	"gompi/internal/launch"
	"gompi/launcher/pool"
	"gompi/launcher/rm"
)

// jobQueue is a head of several jobs (gompirun --head): it has slots and a queue, and
// starts no process.
type jobQueue struct {
	name    string
	slots   int
	policy  rm.Policy  // nil: an external program decides
	socket  string     // path of its socket
	hosts   *discovery // nil: the number of slots is fixed
	verbose bool
}

// Time for jobs to end by themselves when the head ends, and then to be gone after
// SIGKILL.
const (
	jobEndWait  = endGrace + 500*time.Millisecond
	jobKillWait = 2 * time.Second
)

// run serves jobs until a signal ends the head; it returns gompirun's exit status.
func (x *jobQueue) run() int {
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	if x.hosts != nil {
		hosts, err := x.hosts.read(context.Background())
		if err != nil {
			launch.Say("%s: %v", x.hosts.flag, err)
			return launch.ExitFailure
		}
		x.slots = total(hosts)
	}
	s, done, err := x.open()
	if err != nil {
		launch.Say("%v", protocol.Hinted(err))
		return launch.ExitFailure
	}
	defer done()
	for got := range signals {
		n := got.(unix.Signal)
		if n == unix.SIGQUIT {
			launch.WriteAll(2, []byte(s.Queue().String()))
			continue
		}
		s.End(fmt.Sprintf("it was ended by %s", unix.SignalName(n)))
		x.waitForJobs(s, signals)
		return launch.ExitSignal + int(n)
	}
	return 0
}

// open makes the pool with its manager. done closes both.
func (x *jobQueue) open() (s *pool.Server, done func(), err error) {
	var m rm.ResourceManager
	var socket *rmSocket
	name := ""
	if x.policy != nil {
		m, name = rm.NewShared(rm.Config{Policy: x.policy}), x.policy.Name()
	} else {
		if socket, err = newRMSocket(x.socket); err != nil {
			return nil, nil, fmt.Errorf("--manager: %w", err)
		}
		socket.manager = rm.NewExternal(x.name, socket.secret)
		m, name = socket, x.socket
	}
	var log func(string, ...any)
	if x.verbose {
		log = launch.Say
	}
	if s, err = pool.Listen(x.name, name, m, x.slots, log); err != nil {
		if socket != nil {
			socket.close()
		}
		return nil, nil, err
	}
	if socket != nil {
		socket.decided = s.Bell
		go socket.serve()
	}
	over := make(chan struct{})
	var looking sync.WaitGroup
	if x.hosts != nil {
		looking.Go(func() { x.hosts.watch(func(hosts []int) { s.Slots(total(hosts)) }, over) })
	}
	go s.Serve()
	return s, func() {
		close(over)
		looking.Wait() // it may run a command
		s.Close()
		if socket != nil {
			socket.close()
		}
	}, nil
}

// waitForJobs waits until all jobs have ended. Another signal ends the wait; the jobs go
// on ending.
func (x *jobQueue) waitForJobs(s *pool.Server, signals <-chan os.Signal) {
	for _, w := range []time.Duration{jobEndWait, jobKillWait} {
		select {
		case <-s.Left():
			return
		case <-signals:
			return
		case <-time.After(w):
			s.Kill()
		}
	}
	launch.Say("head %s: jobs are left that do not end (gompictl ps)", x.name)
}
