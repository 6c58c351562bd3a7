// SPDX-License-Identifier: Apache-2.0

// Package progress says who polls, who waits and who sleeps in one process:
// docs/design/022-progress.md.
package progress

import "gompi/internal/host/wait"

// Process is what a Machine polls for, and puts to sleep: the engine. Its methods
// are called with the lock held.
type Process interface {
	// Poll looks once at everything that something may come from, and at the hooks
	// (Machine.Step), and goes on with what can go on. It counts itself in
	// Machine.Turns, and returns how much has happened. In a spin, what is dear to
	// look at may be passed over in most turns.
	Poll(spin bool) int
	// Arm announces to all who may have something for this process that they must
	// wake it, and then looks once more. It returns false if there is something to
	// do. Disarm ends that.
	Arm() bool
	Disarm()
}

// Machine is that of one process. Its lock is held in all methods but those that
// say otherwise; those that wait give it away meanwhile.
type Machine struct {
	leading bool // a goroutine polls
	armed   bool // the service goroutine sleeps for everybody
	arming  bool // it is about to: hooks look once more
	closed  bool

	// Turns counts the calls of Process.Poll, and what takes as long: see Busy.
	Turns   uint64
	relaxed uint64 // turns when other goroutines last had a chance to run

	followers followerList
	Policy    wait.Policy

	mu      *wait.Gate
	process Process
	sleeper wait.Sleeper

	looks   uint64 // calls of Busy
	tests   uint64 // calls of Tested
	waits   int    // goroutines in Await
	hooks   []Hook // that wait for what others write into memory
	service service
	replies replies
}

// Init makes m that of a process with this lock, which sleeps there.
func (m *Machine) Init(p Process, mu *wait.Gate, s wait.Sleeper, pol wait.Policy) {
	m.process, m.mu, m.sleeper, m.Policy = p, mu, s, pol
}

// Led reports whether a goroutine polls.
func (m *Machine) Led() bool { return m.leading }

// Armed reports whether the service goroutine sleeps for everybody.
func (m *Machine) Armed() bool { return m.armed }

// Arming reports whether the process is about to sleep: hooks look once more.
func (m *Machine) Arming() bool { return m.arming }

// Followed reports whether a goroutine is parked.
func (m *Machine) Followed() bool { return m.followers.first != nil }

// lookTurns is how many turns an operation counts as that looks at memory, or at
// a fast box.
const lookTurns = 4

// Busy shows the service goroutine that the process is at work, though hardly
// anybody polls. It begins an operation that looks at memory, or at a fast box.
func (m *Machine) Busy() {
	m.Turns += lookTurns
	m.looks++
}

const (
	// attendEvery: in every so manyth operation that looks at memory everything is
	// polled, in the others nothing may be.
	attendEvery = 64
	// attendDear: in every so manyth of those polls also what is dear to look at.
	attendDear = 16
)

// Attend polls once if that is due. Who leads for an operation that looks at memory
// calls it once for each Busy. What it waits for may be there at once, or after one
// yield, in this operation and in all that follow, and to the service the process is at
// work: nobody else would poll for hooks, or for frames that no goroutine waits for, but
// the service at a tick, if it finds nobody inside.
func (m *Machine) Attend() {
	if m.looks%attendEvery == 0 || m.service.due.Load() {
		m.attend()
	}
}

func (m *Machine) attend() {
	due := m.service.due.Swap(false)
	m.process.Poll(!due && m.looks%(attendEvery*attendDear) != 0)
}

// polls is how often Process.Poll was called.
func (m *Machine) polls() uint64 { return m.Turns - m.looks*lookTurns }

// Lead makes the caller the one that polls for all; nobody else does. It does so
// until Leave.
func (m *Machine) Lead() { m.leading = true }

// Leave stops polling for all. It may give the lock away for a moment.
func (m *Machine) Leave() {
	m.leading = false
	if m.armed || m.followers.first != nil {
		m.handOver()
	}
	if m.relaxDue() {
		m.relax()
	}
}

// Looked reports whether nothing has happened since Turns was since but looks at
// memory. Who led then ends it with Rest, and else with Leave.
func (m *Machine) Looked(since uint64) bool {
	return m.Turns == since && m.followers.first == nil && !m.relaxDue()
}

// Rest is Leave after looks at memory: who was armed still is.
func (m *Machine) Rest() { m.leading = false }

// handOver sees to it that somebody polls when a goroutine leaves: another
// leader, or the service if it sleeps and there is more to do, or else the
// oldest of those who go on waiting.
func (m *Machine) handOver() {
	switch {
	case m.leading:
	case m.armed:
		if !m.Arm() {
			m.sleeper.Wake()
		}
	case m.followers.first != nil:
		m.Unpark(m.followers.first)
	}
}

// Wake wakes the process if it sleeps: there is work of which nobody will tell
// it.
func (m *Machine) Wake() {
	if m.armed {
		m.sleeper.Wake()
	}
}

// Arm prepares for sleep: from now on others wake this process. It returns
// false if there is something to do.
func (m *Machine) Arm() bool { return m.process.Arm() && m.prepareHooks() }

// Disarm ends that.
func (m *Machine) Disarm() {
	m.service.again.Stop()
	m.process.Disarm()
	m.endHooks()
}

// relaxTurns is how many turns pass before other goroutines of the process get
// a chance to run, however short each wait is: about 0.4 ms. Otherwise those
// whose processors are all in this loop, the garbage collector among them,
// would wait for Go's preemption, 10 ms a step, or for the kernel's. Each
// chance costs up to 7 us, because Go wakes an idle thread to take it.
const relaxTurns = 16384

func (m *Machine) relaxDue() bool { return m.Turns-m.relaxed >= relaxTurns }

// relax gives that chance. The caller looks again at what the lock guards.
func (m *Machine) relax() {
	m.relaxed = m.Turns
	p := m.Policy
	m.mu.Unlock()
	p.Relax()
	m.mu.Lock()
}

// Yield gives lock and processor away once; turn counts the calls of one wait. It
// returns what that cost of a budget of yields.
func (m *Machine) Yield(turn int) int {
	p := m.Policy
	m.mu.Unlock()
	cost := p.Turn(turn)
	m.mu.Lock()
	return cost
}

// Tested follows the poll of a call that does not wait: a loop of such calls must
// not keep lock and processor from those it waits for.
func (m *Machine) Tested() {
	if m.mu.Contended() || m.relaxDue() {
		m.relax()
	} else if m.Policy.Oversubscribed() {
		m.tests++
		if m.tests%16 == 0 {
			m.Yield(int(m.tests))
		}
	}
}
