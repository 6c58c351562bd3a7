// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"slices"
	"sync/atomic"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
	"gompi/transport"
)

// config is how a job is run. Options fill it.
type config struct {
	transport string
	settings  map[string]string
	wrap      func(transport.Transport, wire.ProcID, func()) (transport.Transport, error)
	overheard func(core.Control) core.Control
	deadline  time.Duration
	started   func([]protocol.StartProc) error
	welcomed  func(*protocol.Welcome)
	commons   *atomic.Int64
	compare   bool
	programs  map[string]func(*Rank, *mpi.Comm)
	most      int // processes; 0: no limit
	strict    bool
	slots     []int // of pretended hosts; nil: one host, in the head's process
}

func newConfig(opts []Option) config {
	c := config{transport: "inproc", settings: map[string]string{}}
	for _, o := range opts {
		o.(option)(&c)
	}
	return c
}

// Option changes how ranks are run. It is the same type as mpitest.Option, so that tests of
// the module may mix options of both packages. All options are of type option.
type Option = interface{ RunOption() }

// option is the one implementation of Option.
type option func(*config)

// RunOption marks an option.
func (option) RunOption() {}

// Transport chooses "inproc" (the default), "shm" or "tcp", or several with
// commas between them.
func Transport(name string) Option { return option(func(c *config) { c.transport = name }) }

// Hosts spreads the job over several pretended hosts with this many slots each: host-0 and
// so on. Each host has an agent of its own behind a connection. Ranks of different hosts share
// nothing: they talk by tcp, which must be among the transports.
func Hosts(hosts, slots int) Option {
	return option(func(c *config) { c.slots = slices.Repeat([]int{slots}, hosts) })
}

// Slots bounds the processes at a time. strict: no host takes more processes than it has
// slots.
func Slots(n int, strict bool) Option {
	return option(func(c *config) { c.most, c.strict = n, strict })
}

// Setting sets a GOMPI_ variable, as a flag of gompirun does.
func Setting(name, value string) Option { return option(func(c *config) { c.settings[name] = value }) }

// Within sets how long a Run may take.
func Within(d time.Duration) Option { return option(func(c *config) { c.deadline = d }) }

// CompareCalls compares the collective calls of the ranks, unless GOMPI_CHECK is set.
func CompareCalls() Option { return option(func(c *config) { c.compare = true }) }

// Program is what a process runs that is spawned with this name.
func Program(name string, f func(t *Rank, world *mpi.Comm)) Option {
	return option(func(c *config) {
		if c.programs == nil {
			c.programs = map[string]func(*Rank, *mpi.Comm){}
		}
		c.programs[name] = f
	})
}

// Overheard puts something between each process that has joined and its agent.
func Overheard(f func(core.Control) core.Control) Option {
	return option(func(c *config) { c.overheard = f })
}

// Wrap puts something between each process's engine and its transport, such as
// package transport/faulty; wake makes the process look at it again.
func Wrap(f func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error)) Option {
	return option(func(c *config) { c.wrap = f })
}

// Welcomed calls f with the welcome of each process that joins; f may change it.
func Welcomed(f func(w *protocol.Welcome)) Option { return option(func(c *config) { c.welcomed = f }) }

// Commons counts how often processes ask their agents for the memory of a
// communicator.
func Commons(n *atomic.Int64) Option { return option(func(c *config) { c.commons = n }) }

// counting counts the requests of a process.
type counting struct {
	core.Control
	commons *atomic.Int64
}

func (c *counting) Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.ArenaRange, error) {
	c.commons.Add(1)
	return c.Control.Common(id, m, n, first, have)
}
