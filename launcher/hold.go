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

// hold is a head of several jobs (gompirun --head): it has slots and a queue, and starts
// nothing.
type hold struct {
	name    string
	slots   int
	policy  rm.Policy // nil: a program decides
	office  string    // its socket
	looks   *discovery
	verbose bool
}

// How long jobs have to end by themselves when the head does, and to be gone when they
// were killed.
const (
	holdGrace = endGrace + 500*time.Millisecond
	holdGone  = 2 * time.Second
)

// run is the whole life of the head; it returns gompirun's exit status.
func (x *hold) run() int {
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	if x.looks != nil {
		hosts, err := x.looks.look(context.Background())
		if err != nil {
			launch.Say("%s: %v", x.looks.flag, err)
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
		x.await(s, signals)
		return launch.ExitSignal + int(n)
	}
	return 0
}

// open makes the pool with its manager. Done ends both.
func (x *hold) open() (s *pool.Server, done func(), err error) {
	var m rm.ResourceManager
	var o *office
	name := ""
	if x.policy != nil {
		m, name = rm.NewShared(rm.Config{Policy: x.policy}), x.policy.Name()
	} else {
		if o, err = newOffice(x.office); err != nil {
			return nil, nil, fmt.Errorf("--manager: %w", err)
		}
		o.x = rm.NewExternal(x.name, o.secret)
		m, name = o, x.office
	}
	var log func(string, ...any)
	if x.verbose {
		log = launch.Say
	}
	if s, err = pool.Listen(x.name, name, m, x.slots, log); err != nil {
		if o != nil {
			o.close()
		}
		return nil, nil, err
	}
	if o != nil {
		o.heard = s.Bell
		go o.serve()
	}
	over := make(chan struct{})
	var looking sync.WaitGroup
	if x.looks != nil {
		looking.Go(func() { x.looks.watch(func(hosts []int) { s.Slots(total(hosts)) }, over) })
	}
	go s.Serve()
	return s, func() {
		close(over)
		looking.Wait() // it may have started a program
		s.Close()
		if o != nil {
			o.close()
		}
	}, nil
}

// await waits until nothing of the jobs is left. Another signal ends the wait: they go on
// ending.
func (x *hold) await(s *pool.Server, signals <-chan os.Signal) {
	for _, w := range []time.Duration{holdGrace, holdGone} {
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
