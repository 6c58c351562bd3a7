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

// Config is how a job is run. Options fill it.
type Config struct {
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
	slots     []int // of hosts that are pretended; nil: there is one, in the head's process
}

func newConfig(opts []Option) Config {
	c := Config{transport: "inproc", settings: map[string]string{}}
	for _, o := range opts {
		o(&c)
	}
	return c
}

// Option changes how ranks are run. It is mpitest.Option.
type Option = func(*Config)

// Transport chooses "inproc" (the default), "shm" or "tcp", or several with
// commas between them.
func Transport(name string) Option { return func(c *Config) { c.transport = name } }

// Hosts makes the job one on several hosts of so many slots each, host-0 and so on. Each has an agent of
// its own behind a connection, and between ranks of different ones nothing is shared:
// they talk by tcp, which must be among the transports.
func Hosts(hosts, slots int) Option {
	return func(c *Config) { c.slots = slices.Repeat([]int{slots}, hosts) }
}

// Slots is how many processes there may be at a time, and whether no host takes more
// than it has slots.
func Slots(n int, strict bool) Option {
	return func(c *Config) { c.most, c.strict = n, strict }
}

// Setting sets a knob, as a flag of gompirun would.
func Setting(name, value string) Option { return func(c *Config) { c.settings[name] = value } }

// Within sets how long a Run may take.
func Within(d time.Duration) Option { return func(c *Config) { c.deadline = d } }

// CompareCalls has the collective calls of the ranks compared, unless GOMPI_CHECK is set.
func CompareCalls() Option { return func(c *Config) { c.compare = true } }

// Program says what a process runs that is spawned with this name.
func Program(name string, f func(t *Rank, world *mpi.Comm)) Option {
	return func(c *Config) {
		if c.programs == nil {
			c.programs = map[string]func(*Rank, *mpi.Comm){}
		}
		c.programs[name] = f
	}
}

// Overheard puts something between each process that has joined and its agent.
func Overheard(f func(core.Control) core.Control) Option {
	return func(c *Config) { c.overheard = f }
}

// Wrap puts something between each process's engine and its transport, such as
// package transport/faulty; wake makes the process look at it again.
func Wrap(f func(t transport.Transport, self wire.ProcID, wake func()) (transport.Transport, error)) Option {
	return func(c *Config) { c.wrap = f }
}

// Welcomed is called with what each process is told when it joins, which it may change.
func Welcomed(f func(w *protocol.Welcome)) Option { return func(c *Config) { c.welcomed = f } }

// Commons counts how often processes ask their agents for the memory of a
// communicator.
func Commons(n *atomic.Int64) Option { return func(c *Config) { c.commons = n } }

// counting counts what a process asks for.
type counting struct {
	core.Control
	commons *atomic.Int64
}

func (c *counting) Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.ArenaRange, error) {
	c.commons.Add(1)
	return c.Control.Common(id, m, n, first, have)
}
