// SPDX-License-Identifier: Apache-2.0

// Package transport is the contract between the engine and what carries its
// bytes. A transport knows process ids and bytes; it knows no ranks, tags or
// communicators.
//
// A Transport belongs to one engine, which calls it under its own lock: no
// method is called concurrently with another, except where a comment says so.
// A transport never calls the engine back; what happened is told by Poll in a
// slice that the caller owns. No method blocks, except Connect and Close.
package transport

import (
	"errors"

	"gompi/internal/base/wire"
	"gompi/transport/tuning"
)

// Slot numbers a peer inside one transport. A slot is not reused before the
// engine has called Release.
type Slot uint32

// Token is the engine's name for an operation. Transports give it back and do
// not look at it. Token 0 means that nobody waits for the answer.
type Token uint64

// Caps says what a transport can do. It does not change after Open.
type Caps struct {
	Name string // "shm", "tcp", "inproc": also the name in GOMPI_TRANSPORT
	// EagerMax is the largest payload that Send accepts, in bytes.
	EagerMax int
	// EagerBest is the largest payload for which Send is faster than a bulk
	// transfer; at most EagerMax.
	EagerBest int
	// SpinEvery: a spinning process with peers here polls only every so many
	// turns, each about 30 ns; 0 counts as 1.
	SpinEvery int
	// Local: reaches processes of the same host only.
	Local bool
	// NeedsConnect: a slot that EvUp made receives only, and an Accept on it
	// may wait, until Connect has been called for its peer.
	NeedsConnect bool
}

// Status is the answer of Send.
type Status uint8

const (
	// Sent: the payload is copied or delivered; the caller may reuse it.
	Sent Status = iota
	// Queued: accepted; an EvSent with the token says when the payload may be
	// reused. Order with later sends is kept.
	Queued
	// Full: refused, nothing happened. An EvWritable will follow.
	Full
	// Broken: refused for good; an EvDown is or will be in Poll.
	Broken
)

// EventKind says what an Event tells and which of its fields are set.
type EventKind uint8

const (
	// EvUp: a process that this engine did not Connect to has connected.
	// Slot, Proc. Precedes every other event of that slot.
	EvUp EventKind = iota + 1
	// EvRecv: a message arrived whole. Slot, Header, Payload.
	EvRecv
	// EvSent: the payload of a Queued send may be reused. Slot, Token.
	EvSent
	// EvWritable: a slot that answered Full takes messages again. Slot.
	EvWritable
	// EvBulk: a bulk transfer ended. Slot, Token, Bytes, Err. On both sides;
	// afterwards no other process touches the buffer.
	EvBulk
	// EvDown: the connection to the peer has ended. Slot, Err, which says how
	// and is no verdict on the peer's process: only the control plane's is.
	// Everything it sent whole came before, but after a Cut; every queued send
	// and bulk transfer of the slot has been answered before. Nothing follows.
	EvDown
	// EvLocal: what a Put of a Poster reads is the caller's again. Token. May be
	// left out: EvRemote says it, too.
	EvLocal
	// EvRemote: an operation of a Poster has ended: it has happened at the other
	// process, and what it reads is here, or Err. Token, Err.
	EvRemote
)

// Event is one entry of what Poll returns.
type Event struct {
	Kind   EventKind
	Slot   Slot
	Header wire.Header
	// Payload is valid until the next Poll of this transport. It may lie in
	// memory that the peer can write: read each byte once.
	Payload []byte
	Token   Token
	Bytes   int64
	Proc    wire.ProcID
	Err     error
}

// Errors that transports report in events or return.
var (
	ErrPeerGone    = errors.New("peer process is gone")
	ErrUnreachable = errors.New("peer cannot be reached")
	ErrProtocol    = errors.New("peer broke the protocol")
	ErrCut         = errors.New("peer has cut the connection: it found this process breaking the protocol, or has no memory for its messages")
	ErrCancelled   = errors.New("transfer was cancelled")
	ErrUnavailable = errors.New("transport is not available here")
	ErrHidden      = errors.New("memory is not exposed any more")
)

// MaxDesc is the largest descriptor of a bulk offer, in bytes.
const MaxDesc = 64

// Transport carries messages between processes.
type Transport interface {
	Caps() Caps

	// Connect returns the slot for a peer, making it if there is none yet
	// (an incoming contact may have made it). It takes ownership of the
	// contact's file descriptors in every case. It may make system calls but
	// does not wait for the peer: messages sent before the connection stands
	// are Queued or refused as Full.
	Connect(c wire.Contact) (Slot, error)

	// Send hands one message to a peer. Messages of one slot arrive in the
	// order in which Send accepted them. len(p) <= Caps().EagerMax. On Sent
	// the payload is the caller's again; on Queued after EvSent (or EvDown);
	// on Full and Broken nothing was taken. With token 0 it never answers
	// Queued: it copies, or is Full.
	Send(s Slot, h *wire.Header, p []byte, tok Token) Status

	// Poll makes progress (bulk transfers too, a bounded piece a call) and
	// fills ev with what happened. It returns the number of events. Payloads
	// of the last call become invalid. When Poll returns less than len(ev),
	// nothing more was ready.
	Poll(ev []Event) int

	// Arm is called before the process sleeps: from now on whatever makes
	// Poll return an event must first wake the process (through FD becoming
	// readable or Env.Wake). It returns false if there may be an event
	// already: then the caller does not sleep. Disarm ends it; both may be
	// called repeatedly.
	Arm() bool
	Disarm()

	// FD returns a file descriptor that becomes readable when an armed
	// process must wake, or -1 if the transport uses Env.Wake. It does not
	// change.
	FD() int

	// Fail tells that the control plane knows the peer's process to have
	// ended. What it sent whole is still delivered, then EvDown comes. When
	// EvDown has been returned, no copy to or from that process is under way.
	Fail(s Slot)

	// Cut breaks the connection to a peer that lives: it has broken the rules,
	// and why says how. Nothing more of it is delivered. Both sides answer all
	// that hangs on the connection and get EvDown: with why here, there with
	// ErrCut, or ErrPeerGone where it cannot be told, after what was sent to it
	// before. On neither side EvBulk or EvDown comes while the other may still
	// touch the buffer: a peer that is stopped in the middle of a copy delays
	// them until it goes on, or Fail. Where the peer cannot be told before
	// Connect (NeedsConnect) they wait for that, too; another Cut, of whoever
	// cannot connect, ends this wait.
	Cut(s Slot, why error)

	// Release forgets a peer after its EvDown, or a peer with which all
	// traffic has ended.
	Release(s Slot)

	// Flushed reports whether everything that Send accepted has left this
	// process for good, so that exiting loses nothing.
	Flushed() bool

	// Close ends the transport: an orderly end towards living peers. Nothing
	// is called afterwards.
	Close() error

	Bulk
}

// Bulk moves one large contiguous buffer. The engine carries the offer's
// descriptor in a message of its own; the receiver accepts. Both sides end
// with one EvBulk.
type Bulk interface {
	// Offer prepares buf to be taken by the peer of s; tok is no other open
	// offer's. It writes a
	// descriptor of at most MaxDesc bytes into desc and returns its length.
	// buf must stay untouched until EvBulk, and on the heap.
	Offer(s Slot, buf []byte, tok Token, desc []byte) (int, error)

	// Accept starts to move an offer into buf; desc came from the peer and
	// is not trusted: an error means that it cannot be valid, and nothing
	// was started. If buf is shorter than the offer only len(buf) bytes are
	// moved, and both sides see that number in EvBulk.
	Accept(s Slot, desc []byte, buf []byte, tok Token) error

	// Withdraw ends an offer that the peer has not accepted and never will
	// (the engine has asked it): no EvBulk follows.
	Withdraw(s Slot, tok Token)
}

// FastBoxes is an optional capability: a receive that waits for one known peer
// looks at that peer's messages alone.
type FastBoxes interface {
	// FastBox returns the incoming messages of a slot, nil if there are none
	// yet. It is valid until EvDown or Release of the slot.
	FastBox(s Slot) FastBox
}

// FastBox is the stream of messages of one peer.
type FastBox interface {
	// Take returns the next message of the peer, if one is there that Poll
	// would report as EvRecv next of that slot; it looks at most turns times,
	// without a pause. The payload is valid until
	// the next Take or Poll; a Take also ends the payloads of earlier events
	// of the slot. It makes no other progress.
	Take(h *wire.Header, turns int) (payload []byte, ok bool)
}

// Keeper is an optional capability of a transport whose process may lose what it has
// sent by ending without Close.
type Drainer interface {
	// Taken reports, of a transport that is Flushed, that it would lose nothing.
	Drained() bool
}

// Oversubscriber is an optional capability: the transport leaves out what only pays
// while its process does not wait for a processor.
type Oversubscriber interface {
	// Oversubscribed tells whether the processes of this host outnumber its
	// processors. Safe for any goroutine.
	Oversubscribed(bool)
}

// Tunable is an optional capability: which way messages go can be chosen.
type Tunable interface {
	// SetWays chooses for all peers, from now on.
	SetThresholds(tuning.Table)
}

// Teller is an optional capability: it tells people how messages have gone.
type Describer interface {
	// Tell is about a peer, "" if there is nothing to tell.
	Describe(s Slot) string
}

// Reserver is an optional capability: a payload is written where Send would
// copy it to.
type Reserver interface {
	// Reserve gives out the memory of the next message to a peer: n bytes, 1 to
	// Caps().EagerMax. It answers as Send would, with memory if Sent. The
	// caller fills it, without reading it back, as the peer may write there
	// too, and then calls Commit; or any other method, and nothing was sent.
	Reserve(s Slot, n int) ([]byte, Status)

	// Commit sends p, which is what the last call, Reserve, has returned for s.
	Commit(s Slot, h *wire.Header, p []byte)
}

// Sharer is an optional capability: memory that processes of one host share.
// Its users synchronise themselves; what another process writes there is not
// to be believed. The methods may take long and are safe for any goroutine, also
// while another method of the transport is called.
type Sharer interface {
	// Share gives out n zeroed bytes, aligned to ShareAlign, which stay until
	// Unshare. place names them to the processes that are to Join.
	Share(n int) (mem []byte, place uint64, err error)

	// Unshare takes back memory of Share that all who joined have left.
	Unshare(mem []byte, place uint64)

	// Join makes the n bytes at place of another process usable in this one,
	// until Leave, also after that process has ended. It owns the contact's
	// descriptors in every case. place came from that process and is not
	// trusted: an error means that it cannot be valid.
	Join(c wire.Contact, place uint64, n int) (mem []byte, err error)

	// Common makes n bytes usable in this process, until Leave, that are zeroed
	// at first and those of all who name the same key and length. Where Handed
	// says so they are the extent x, which the agent has given out, and those
	// that can be used are as many as it was asked for; others when a process
	// that has them has called Populate. The file of x is owned in every case;
	// Held are the arenas, as bits, of which the transport needs none.
	Attach(k SharedKey, n int, x wire.ArenaRange) (mem []byte, err error)
	Preallocated() bool
	HeldArenas() uint64

	// Populate makes sure that all who map part of Common's memory can use it:
	// whole pages.
	Populate(mem []byte) error

	// Bell is that of the contact's process, to which no connection is needed. It
	// owns the contact's descriptors in every case.
	Bell(c wire.Contact) (Bell, error)

	// BellName is what leads the processes of this host to this one's bell without a
	// contact; zero: nothing does. NamedBell is the bell of a process that has said
	// this of itself, which is not trusted: an error means that it leads to none, or
	// that this process may not have it, and Bell is to be asked.
	BellName() [2]uint64
	NamedBell(p wire.ProcID, name [2]uint64) (Bell, error)

	// Leave ends a Join, a Common, or a Share whose memory others go on using: no
	// pointer into mem is used afterwards. It may be called after Close.
	Leave(mem []byte)
}

// Bell wakes a process, which then looks at the memory that it shares. Its methods
// may be called after the end of the transport.
type Bell interface {
	Ring()
	Close()
}

// CommonKey names memory that processes of one host have in common: that of a
// communicator, by the first and the number of them.
type SharedKey struct {
	Context wire.ContextID
	First   wire.ProcID
	Ranks   int
}

// Checker is an optional capability: what a peer has sent may have been damaged in
// memory that others can write, so that it never comes.
type Checker interface {
	// Check is called every few seconds. A connection on which a message cannot
	// come any more ends with ErrProtocol after two calls on both sides.
	Check()
}

// Collector is an optional capability: what a process that has ended had begun in
// this process's memory, or left there, is used again.
type Collector interface {
	// Collect tells that a process has ended, whether or not there was a
	// connection. What there was of one is released.
	Collect(proc wire.ProcID)
}

// ShareAlign is the alignment of shared memory: two lines, as processors
// fetch them in pairs.
const ShareAlign = 128

// SingleCopy is an optional capability: a process reads and writes what others of
// its host have exposed, without them.
type SingleCopy interface {
	// Register lets processes that know the key access buf, which must be on the
	// heap, until Unregister. It is also told of buffers that Read fills again and
	// again.
	Register(buf []byte) (key uint64)
	Unregister(key uint64)

	// Proof is the key of eight exposed bytes and what stands there, for those
	// who Reach this process.
	Proof() (key, value uint64)

	// Reach returns the memory of another process, if it can be accessed: value
	// is found at key. It owns the contact's descriptors in every case. The
	// memory is used until that process is known to be dead, not longer.
	Reach(c wire.Contact, key, value uint64) (Memory, error)
}

// Memory is what another process has exposed. Unlike a Transport it may be used
// by several goroutines at once. Off counts bytes behind a key. A key that is
// not exposed any more gives an error or anything at all; what lies outside of
// what is exposed need not be an error, so that the caller checks it.
// ErrPeerGone: the process has ended. After an error any part may have been
// copied.
type Memory interface {
	// Read fills dst, at most MaxRead bytes.
	Read(dst []byte, key uint64, off int64) error

	// Write copies src, at most MaxRead bytes.
	Write(src []byte, key uint64, off int64) error

	// ReadRuns and WriteRuns are Read and Write of at most MaxRuns runs, of
	// MaxRead bytes together.
	ReadRuns(runs []Run, key uint64) error
	WriteRuns(runs []Run, key uint64) error

	// Writable reports whether Write and WriteRuns may be used: a system can
	// allow reading alone.
	Writable() bool
}

// Run is a piece of memory on both sides.
type Run struct {
	Mem []byte // here
	Off int64  // there
}

// MaxRead is the most that one call copies: longer ones would hold off a stop
// of the world. MaxRuns is the most runs of a call: with more the cost of each
// no longer falls.
const (
	MaxRead = 256 << 10
	MaxRuns = 64
)

// Direct is an optional capability of a Memory in the same address space.
type Direct interface {
	// Bytes returns what is exposed behind a key, nil if nothing is.
	Bytes(key uint64) []byte
}

// RemoteMemory is an optional capability: a device, such as a network adapter,
// reads and writes what other processes have exposed, without them, on any host.
// Operations are posted, and complete later, in any order.
type RemoteMemory interface {
	// Expose lets those who know the key access buf, which stays where it is, until
	// Hide. It writes the key, which only this transport understands, into key, of
	// MaxKey bytes, and returns its length.
	Expose(buf []byte, key []byte) (int, error)

	// Hide ends an Expose. When it returns nothing accesses the memory any more;
	// what comes for it later ends with ErrHidden.
	Hide(key []byte)

	// Poster is the way to the memory of another process. It owns the contact's
	// descriptors in every case, and does not wait for the process: there is only
	// one at a time for each.
	Poster(c wire.Contact) (Poster, error)
}

// MaxKey is the longest key of RemoteMemory, MaxPost the most that one operation
// moves, both in bytes.
const (
	MaxKey  = 32
	MaxPost = 16 << 20
)

// Poster posts operations on the memory of one process. Its methods are called as
// those of a Transport are, and cost no more than telling the device. Each
// operation that is not refused ends with one EvRemote, at the latest when the
// device finds that the other process does not answer: with ErrPeerGone if its
// process may have ended.
type Poster interface {
	// Put writes src to byte off behind a key of the other process, and Get reads
	// from there into dst; both have at most MaxPost bytes, and are used until
	// they are answered as the payload of Send is: after Sent src is the caller's again,
	// after Queued with EvLocal. dst is with EvRemote. Full: one of this Poster's
	// operations has to end first; there is one. Broken: none will be taken any more.
	Put(src, key []byte, off int64, tok Token) Status
	Get(dst, key []byte, off int64, tok Token) Status

	// Ring begins what was posted: before it a Poster may keep operations back, to
	// tell the device of many at once.
	Ring()

	// Withdraw ends the use of this process's memory by an operation that is under
	// way; it waits for what the device is doing there at this moment. The operation
	// ends nevertheless: with ErrCancelled, unless it has happened.
	Withdraw(tok Token)

	// Close ends everything, as Withdraw does, without events.
	Close()
}

// Env is what an engine gives to a transport when it opens it.
type Env struct {
	Self wire.ProcID
	// Secret is the job's: handshakes prove that they know it. Abroad is what this
	// process and those of another job prove to each other; false: it knows none. Safe from
	// any goroutine; nil: there are no other jobs.
	Secret        [32]byte
	ForeignSecret func(job wire.JobID) (secret [32]byte, ok bool)
	// Wake makes the sleeping owner poll. Safe from any goroutine.
	Wake func()
	// Setting looks up a knob (GOMPI_*), "" if unset.
	Setting func(name string) string
	// Segment and Bell are this process's own shared segment and eventfd, or
	// -1. The transport does not close them.
	Segment, Bell int
	// Arena is the file of which Common is given ranges without it; Total 0: there
	// is none. The transport does not close it.
	Arena wire.ArenaRange
}
