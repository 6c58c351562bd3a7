// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"gompi/internal/base/credit"
	"gompi/internal/base/wire"
	"gompi/internal/control/callreg"
	"gompi/internal/engine/progress"
	"gompi/internal/host/wait"
	"gompi/transport"
)

// Control is what the engine needs from the control plane. Contact may block;
// it is called on a goroutine of its own. The others return at once.
type Control interface {
	// Contact tells how to reach a process.
	Contact(p wire.ProcID) (wire.Contact, error)
	// Watch asks to be told (Engine.ProcFailed, ProcGone) of the end of each of
	// m, also if it has ended.
	Watch(m wire.Members) error
	// Dead acknowledges an end: nothing of this process touches p any more.
	Dead(p wire.ProcID) error
	// Cut tells a living process (Engine.ProcCut) that it cannot be reached.
	Cut(p wire.ProcID, why string) error
	// Ping asks whether a process takes part in the job (Engine.Pinged there,
	// then Engine.Ponged): where it does not, its end is told to who watches it.
	// For this process itself the control plane answers, behind the deaths that
	// it knows of.
	Ping(p wire.ProcID, id uint64) error
	// Pong answers a Ping.
	Pong(p wire.ProcID, id uint64) error
	// Common gives memory of n bytes that the members of a context have in
	// common, with pages in the first of them. have are the arenas, as bits, of
	// which the caller needs no file; it owns that of another. It may block, and is
	// called where a transport wants it. Who does not touch the memory any more
	// says LeaveCommon, which returns at once.
	Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.ArenaRange, error)
	LeaveCommon(x wire.ArenaRange) error
}

// Config describes one process. All fields but the optional ones are needed.
type Config struct {
	Self    wire.ProcID
	Control Control
	// Transports in order of preference; the engine closes them.
	Transports []transport.Transport
	Sleeper    wait.Sleeper // the engine closes it
	Policy     wait.Policy
	// EagerMax caps eager payloads, in bytes. Zero means the transport's
	// choice; negative means none.
	EagerMax int
	// Credit is how many bytes of unexpected eager messages a peer keeps for
	// this process, and this process for each peer. Equal in the whole job.
	// Zero means DefaultCredit to begin with, and more as memory allows.
	Credit int64
	// Budget is how many bytes of unexpected messages this process keeps beyond
	// what each peer starts with. Zero means what Room says.
	Budget int64
	// Room tells how many bytes more this process may take for unexpected
	// messages. It is called with the engine locked. Nil means none.
	Room func() int64
	// Check makes receives fail that a message in ready mode found missing.
	Check bool
	// Blocked is called by a goroutine that finds the engine locked; optional.
	Blocked func()
	// Book records blocking calls for the roll call, and counts messages; optional.
	Book *callreg.Registry
}

// DefaultCredit is how many unexpected eager bytes of a pair of processes there
// may be to begin with.
const DefaultCredit = credit.Default

// process is what all values of an engine need: who they work for, the lock, and
// who polls.
type process struct {
	cfg    Config // immutable
	mu     *wait.Gate
	closed bool
	tally  *callreg.Counters
	prog   progress.Machine
}

// sent counts a message that the transport has taken, or its announcement.
func (ps *process) sent(bytes int64) {
	ps.tally.Sent++
	ps.tally.SentBytes += uint64(bytes)
}

// Self is this process's id.
func (ps *process) Self() wire.ProcID { return ps.cfg.Self }

// serveAt is how many bytes an operation must have for the service goroutine to
// take it up at once: waking it costs some microseconds.
const serveAt = 512 << 10

// serves reports whether an operation of so many bytes is left to the service
// goroutine when its caller goes computing.
func (ps *process) serves(bytes int64) bool {
	return bytes >= serveAt && ps.prog.Policy.Spare && !ps.prog.Led() && !ps.closed
}

// leave is called when a goroutine leaves an operation of so many bytes
// unfinished.
func (ps *process) leave(bytes int64) {
	if ps.serves(bytes) && !ps.prog.Armed() {
		ps.prog.AskService()
	}
}

// broken is called where a transport refuses a send for good. The send stays in
// its queue: EvDown, which is to come, ends it and says why.
func (ps *process) broken() {
	ps.prog.Wake()
}

// wonder waits for the answer. The lock is given away meanwhile.
func (ps *process) wonder(q *question) (site string) {
	ps.mu.Unlock()
	<-q.answered
	ps.mu.Lock()
	return q.site
}

// Kick makes a sleeping process look at its transports.
func (ps *process) Kick() { ps.cfg.Sleeper.Wake() }
