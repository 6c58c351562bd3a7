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

// Control is what the engine needs from the control plane. Contact may block; it is called
// on a goroutine of its own. Common may block as well. All others return at once.
type Control interface {
	// Contact returns how to reach a process.
	Contact(p wire.ProcID) (wire.Contact, error)
	// Watch asks for a report (Engine.ProcFailed, ProcGone) when a process of m ends.
	// Processes that have ended already are reported too.
	Watch(m wire.Members) error
	// Dead acknowledges an end: this process does not touch p any more.
	Dead(p wire.ProcID) error
	// Cut tells a living process (Engine.ProcCut) that it cannot be reached.
	Cut(p wire.ProcID, why string) error
	// Ping asks whether a process takes part in the job (Engine.Pinged there, then
	// Engine.Ponged here). If it does not, its end is reported to the processes that watch
	// it. For this process itself the control plane answers, after the deaths that it
	// knows.
	Ping(p wire.ProcID, id uint64) error
	// Pong answers a Ping.
	Pong(p wire.ProcID, id uint64) error
	// Common returns memory of n bytes that the members of a context share, with pages in
	// the first of them. have holds, as bits, the arenas whose file the caller has already;
	// the caller owns the file of any other. It may block, and is called where a transport
	// wants it. LeaveCommon says that this process does not touch the memory any more; it
	// returns at once.
	Common(id wire.ContextID, m wire.Members, n, first int, have uint64) (wire.ArenaRange, error)
	LeaveCommon(x wire.ArenaRange) error
}

// Config describes one process. All fields but the optional ones are needed.
type Config struct {
	Self    wire.ProcID
	Control Control
	// Transports lists the transports in order of preference. The engine closes them.
	Transports []transport.Transport
	Sleeper    wait.Sleeper // the engine closes it
	Policy     wait.Policy
	// EagerMax caps eager payloads, in bytes. Zero means the transport's
	// choice; negative means none.
	EagerMax int
	// Credit is how many bytes of unexpected eager messages this process keeps for each
	// peer, and each peer for this process. It must be the same in the whole job. Zero
	// means DefaultCredit at first, and more as memory allows.
	Credit int64
	// Budget is how many bytes of unexpected messages this process keeps beyond the initial
	// credit of its peers. Zero means that Room decides.
	Budget int64
	// Room returns how many more bytes this process may use for unexpected messages. It is
	// called with the engine locked. Nil means none.
	Room func() int64
	// Check makes a receive fail if a ready-mode message did not find it posted.
	Check bool
	// Blocked is called by a goroutine that finds the engine locked; optional.
	Blocked func()
	// Book is the blocking-call registry and counts messages; optional.
	Book *callreg.Registry
}

// DefaultCredit is the initial limit of unexpected eager bytes for a pair of processes.
const DefaultCredit = credit.Default

// process is what all parts of an engine need: the configuration, the lock, and the polling
// state.
type process struct {
	cfg      Config // immutable
	mu       *wait.Gate
	closed   bool
	counters *callreg.Counters
	prog     progress.Machine
}

// sent counts a message, or an announcement, that the transport has taken.
func (ps *process) sent(bytes int64) {
	ps.counters.Sent++
	ps.counters.SentBytes += uint64(bytes)
}

// Self is this process's id.
func (ps *process) Self() wire.ProcID { return ps.cfg.Self }

// serveAt is the least length, in bytes, of an operation that the service goroutine
// continues at once. Waking it costs some microseconds.
const serveAt = 512 << 10

// serves reports whether an operation of so many bytes is left to the service goroutine
// when its caller goes on computing.
func (ps *process) serves(bytes int64) bool {
	return bytes >= serveAt && ps.prog.Policy.Spare && !ps.prog.Led() && !ps.closed
}

// leave must be called when a goroutine leaves an operation of so many bytes unfinished.
func (ps *process) leave(bytes int64) {
	if ps.serves(bytes) && !ps.prog.Armed() {
		ps.prog.AskService()
	}
}

// broken is called when a transport refuses a send for good. The send stays in its queue
// until EvDown ends it and gives the reason.
func (ps *process) broken() {
	ps.prog.Wake()
}

// awaitSite waits for the answer. It releases the lock meanwhile.
func (ps *process) awaitSite(q *siteQuery) (site string) {
	ps.mu.Unlock()
	<-q.answered
	ps.mu.Lock()
	return q.site
}

// Kick makes a sleeping process look at its transports.
func (ps *process) Kick() { ps.cfg.Sleeper.Wake() }
