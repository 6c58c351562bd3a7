// SPDX-License-Identifier: Apache-2.0

// Package progress decides who polls, who waits and who sleeps in one process. A Machine
// has the state, a Waiter is one goroutine in a blocking call, a Hook looks at memory in
// every poll, and one service goroutine sleeps in the kernel for all.
// docs/design/022-progress.md.
package progress

import "gompi/internal/host/wait"

// Process is what a Machine polls and puts to sleep: the engine. Its methods are called
// with the lock held.
type Process interface {
	// Poll looks once at all sources and at the hooks (Machine.Step), and continues what
	// can continue. It counts itself in Machine.Turns, and returns how many events it has
	// handled. In a spin it may skip costly sources in most turns.
	Poll(spin bool) int
	// Arm asks all sources to wake this process, and then looks once more. It returns false
	// if there is something to do. Disarm ends it.
	Arm() bool
	Disarm()
}

// Machine decides who polls, waits and sleeps in one process. Its methods must be called
// with the lock held, unless they say otherwise. Methods that wait release it meanwhile.
type Machine struct {
	leading bool // a goroutine polls
	armed   bool // the service goroutine sleeps for all
	arming  bool // it is about to sleep: hooks look once more
	closed  bool

	// Turns counts the calls of Process.Poll, and operations that take as long: see Busy.
	Turns   uint64
	relaxed uint64 // Turns when other goroutines last had a chance to run

	followers followerList
	Policy    wait.Policy

	mu      *wait.Gate
	process Process
	sleeper wait.Sleeper

	looks   uint64 // calls of Busy
	tests   uint64 // calls of Tested
	waits   int    // goroutines in Await
	hooks   []Hook // they wait for words that other processes write
	service service
	replies replies
}

// Init prepares m for a process with a lock and a sleeper.
func (m *Machine) Init(p Process, mu *wait.Gate, s wait.Sleeper, pol wait.Policy) {
	m.process, m.mu, m.sleeper, m.Policy = p, mu, s, pol
}

// Led reports whether a goroutine polls.
func (m *Machine) Led() bool { return m.leading }

// Armed reports whether the service goroutine sleeps for all.
func (m *Machine) Armed() bool { return m.armed }

// Arming reports whether the process is about to sleep: hooks look once more.
func (m *Machine) Arming() bool { return m.arming }

// Followed reports whether a goroutine is parked.
func (m *Machine) Followed() bool { return m.followers.first != nil }

// lookTurns is how many turns an operation counts that looks at memory or at a fast box.
const lookTurns = 4

// Busy marks the beginning of an operation that looks at memory or at a fast box. It shows
// the service goroutine that the process is at work, though hardly any goroutine polls.
func (m *Machine) Busy() {
	m.Turns += lookTurns
	m.looks++
}

const (
	// attendEvery: one of so many operations that look at memory polls everything.
	attendEvery = 64
	// attendDear: one of so many of those polls includes costly sources.
	attendDear = 16
)

// Attend polls once if that is due. A goroutine that leads for an operation that looks at
// memory must call it once for each Busy. Such an operation may end at once, or after one
// yield, and so may all that follow. The service then takes the process to be at work.
// Without Attend only the service would poll hooks and frames, at a tick that finds no
// goroutine inside.
func (m *Machine) Attend() {
	if m.looks%attendEvery == 0 || m.service.due.Load() {
		m.attend()
	}
}

func (m *Machine) attend() {
	due := m.service.due.Swap(false)
	m.process.Poll(!due && m.looks%(attendEvery*attendDear) != 0)
}

// polls returns how often Process.Poll was called.
func (m *Machine) polls() uint64 { return m.Turns - m.looks*lookTurns }

// Lead makes the caller the only goroutine that polls, until Leave.
func (m *Machine) Lead() { m.leading = true }

// Leave stops polling for all. It may release the lock for a moment.
func (m *Machine) Leave() {
	m.leading = false
	if m.armed || m.followers.first != nil {
		m.handOver()
	}
	if m.relaxDue() {
		m.relax()
	}
}

// Looked reports whether nothing but looks at memory has happened since Turns was since. If
// so, the leader ends with Rest, otherwise with Leave.
func (m *Machine) Looked(since uint64) bool {
	return m.Turns == since && m.followers.first == nil && !m.relaxDue()
}

// Rest is Leave after looks at memory. The process stays armed if it was.
func (m *Machine) Rest() { m.leading = false }

// handOver makes another goroutine poll when one leaves: a new leader; or the service, if
// it sleeps and there is more to do; or else the oldest waiter.
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

// Wake wakes the process if it sleeps: there is work that no event reports.
func (m *Machine) Wake() {
	if m.armed {
		m.sleeper.Wake()
	}
}

// Arm prepares for sleep: other processes wake this one from now on. It returns false if
// there is something to do.
func (m *Machine) Arm() bool { return m.process.Arm() && m.prepareHooks() }

// Disarm ends Arm.
func (m *Machine) Disarm() {
	m.service.again.Stop()
	m.process.Disarm()
	m.endHooks()
}

// relaxTurns is how many turns pass before other goroutines of the process get a chance to
// run, however short each wait is: about 0.4 ms. Otherwise goroutines whose processors are
// all in this loop, the garbage collector among them, would wait for Go's preemption, 10 ms
// a step, or for the kernel's. Each chance costs up to 7 us, because Go wakes an idle
// thread to take it.
const relaxTurns = 16384

func (m *Machine) relaxDue() bool { return m.Turns-m.relaxed >= relaxTurns }

// relax gives that chance. The caller must check again what the lock guards.
func (m *Machine) relax() {
	m.relaxed = m.Turns
	p := m.Policy
	m.mu.Unlock()
	p.Relax()
	m.mu.Lock()
}

// Yield releases lock and processor once; turn counts the calls of one wait. It returns how
// much of a budget of yields that used.
func (m *Machine) Yield(turn int) int {
	p := m.Policy
	m.mu.Unlock()
	cost := p.Turn(turn)
	m.mu.Lock()
	return cost
}

// Tested must be called after the poll of a call that does not wait. A loop of such calls
// must not keep lock and processor from the goroutines that it waits for.
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
