// SPDX-License-Identifier: Apache-2.0

// Package transport is the contract between the engine and the transports that carry its
// messages. Transport is the interface that every transport implements; further interfaces
// are optional capabilities. A transport knows process ids and bytes; it knows no ranks, tags
// or communicators.
//
// A Transport belongs to one engine, which calls it under its own lock: no method is called
// concurrently with another, unless a comment allows it. A transport never calls the engine
// back; Poll reports events in a slice that the caller owns. No method blocks, except Connect
// and Close.
package transport

import (
	"errors"

	"gompi/internal/base/wire"
	"gompi/transport/tuning"
)

// Slot is the number of a peer inside one transport. A slot is not reused before the engine
// has called Release.
type Slot uint32

// Token is the engine's name for an operation. A transport returns it and does not look at it.
// Token 0 means that nobody waits for the answer.
type Token uint64

// Caps says what a transport can do. It is constant after Open.
type Caps struct {
	Name string // "shm", "tcp", "inproc": also the name in GOMPI_TRANSPORT
	// EagerMax is the largest payload that Send accepts, in bytes.
	EagerMax int
	// EagerBest is the largest payload for which Send is faster than a bulk
	// transfer; at most EagerMax.
	EagerBest int
	// SpinEvery makes a spinning process with peers on this transport poll it only in every
	// SpinEvery-th turn, each about 30 ns; 0 counts as 1.
	SpinEvery int
	// Local says that the transport reaches only processes of the same host.
	Local bool
	// NeedsConnect says that a slot from EvUp can only receive, and that an Accept on it may
	// wait, until Connect has been called for its peer.
	NeedsConnect bool
}

// Status is the answer of Send.
type Status uint8

const (
	// Sent means that the payload is copied or delivered; the caller may reuse it.
	Sent Status = iota
	// Queued means that the message is accepted. An EvSent with the token says when the
	// payload may be reused. Later sends to the slot keep their order.
	Queued
	// Full means that nothing was accepted. An EvWritable will follow.
	Full
	// Broken means that nothing will be accepted any more. An EvDown is or will be in Poll.
	Broken
)

// EventKind says what an Event reports and which of its fields are set.
type EventKind uint8

const (
	// EvUp reports a process that has connected without a Connect of this engine. Slot,
	// Proc. It precedes every other event of that slot.
	EvUp EventKind = iota + 1
	// EvRecv reports a whole message. Slot, Header, Payload.
	EvRecv
	// EvSent says that the payload of a Queued send may be reused. Slot, Token.
	EvSent
	// EvWritable says that a slot that answered Full accepts messages again. Slot.
	EvWritable
	// EvBulk reports the end of a bulk transfer, on both sides. Slot, Token, Bytes, Err.
	// Afterwards no other process touches the buffer.
	EvBulk
	// EvDown reports the end of the connection to a peer. Slot, Err. Err says why the
	// connection ended; it does not say whether the peer's process is alive, which only the
	// control plane knows. All whole messages of the peer came before, except after a Cut.
	// Every queued send and bulk transfer of the slot was answered before. No event of the
	// slot follows.
	EvDown
	// EvLocal says that the memory of a Put of a Poster is the caller's again. Token. A
	// transport may omit it, because EvRemote implies it.
	EvLocal
	// EvRemote reports the end of an operation of a Poster. Token, Err. Without an Err the
	// operation was done at the other process, and the data of a Get is here.
	EvRemote
)

// Event is one entry of what Poll returns.
type Event struct {
	Kind   EventKind
	Slot   Slot
	Header wire.Header
	// Payload is valid until the next Poll of this transport. It may lie in memory that the
	// peer can write, so read each byte only once.
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
	ErrCut         = errors.New("peer has cut the connection: this process broke the protocol, or the peer has no memory for its messages")
	ErrCancelled   = errors.New("transfer was cancelled")
	ErrUnavailable = errors.New("transport is not available here")
	ErrHidden      = errors.New("memory is not exposed any more")
)

// MaxDesc is the maximum size of the descriptor of a bulk offer, in bytes.
const MaxDesc = 64

// Transport carries messages between processes.
type Transport interface {
	Caps() Caps

	// Connect returns the slot of a peer. It makes the slot, unless an incoming connection
	// has made it. Connect takes ownership of the contact's file descriptors in every case.
	// It may make system calls but does not wait for the peer: until the connection stands,
	// messages are Queued or refused as Full.
	Connect(c wire.Contact) (Slot, error)

	// Send sends one message to a peer. Messages of one slot arrive in the order in which
	// Send accepted them. len(p) must be at most Caps().EagerMax. After Sent the payload is
	// the caller's again; after Queued that happens with EvSent or EvDown; after Full and
	// Broken nothing was taken. With token 0 Send never answers Queued: it copies the
	// payload or answers Full.
	Send(s Slot, h *wire.Header, p []byte, tok Token) Status

	// Poll makes progress, also a bounded part of bulk transfers, and fills ev with events.
	// It returns their number. Payloads of the last call become invalid. If Poll returns
	// less than len(ev), no further event was ready.
	Poll(ev []Event) int

	// Arm is called before the process sleeps. From then on, whatever makes Poll return an
	// event must first wake the process: FD becomes readable, or the transport calls
	// Env.Wake. Arm returns false if there may be an event already; then the caller does
	// not sleep. Disarm ends this state. Both may be called repeatedly.
	Arm() bool
	Disarm()

	// FD returns a file descriptor that becomes readable when an armed process must wake,
	// or -1 if the transport uses Env.Wake. The result is constant.
	FD() int

	// Fail says that the peer's process has ended, as the control plane knows. Whole
	// messages of the peer are still delivered; then EvDown follows. After EvDown no copy to
	// or from that process is under way.
	Fail(s Slot)

	// Cut breaks the connection to a living peer that has broken the protocol; why says how.
	// None of the peer's further messages is delivered. Both sides answer all operations of
	// the connection and get EvDown: this side with why, the peer with ErrCut, or with
	// ErrPeerGone if it cannot be told. The peer first gets what was sent to it before. On
	// neither side do EvBulk and EvDown come while the other side may still touch the buffer.
	// A peer that is stopped in the middle of a copy delays them until it goes on, or until
	// Fail. If the peer cannot be told before a Connect (NeedsConnect), they wait for that,
	// too. An engine that cannot connect calls Cut again to end this wait.
	Cut(s Slot, why error)

	// Release forgets a peer after its EvDown, or a peer with which all traffic has ended.
	Release(s Slot)

	// Flushed reports whether everything that Send accepted has left this process, so that
	// nothing is lost if the process exits.
	Flushed() bool

	// Close ends the transport in an orderly way for living peers. No other method is called
	// afterwards.
	Close() error

	Bulk
}

// Bulk moves large contiguous buffers. The engine carries the descriptor of an offer in one of
// its messages, and the receiver accepts the offer. On both sides a transfer ends with one
// EvBulk.
type Bulk interface {
	// Offer prepares buf for the peer of s to take. tok must differ from those of other
	// open offers. Offer writes a descriptor of at most MaxDesc bytes into desc and
	// returns its length. buf must be on the heap and must not change until EvBulk.
	Offer(s Slot, buf []byte, tok Token, desc []byte) (int, error)

	// Accept starts to move an offer into buf. desc came from the peer and is not trusted:
	// an error means that it cannot be valid, and nothing was started. If buf is shorter
	// than the offer, only len(buf) bytes are moved, and both sides see that number in
	// EvBulk.
	Accept(s Slot, desc []byte, buf []byte, tok Token) error

	// Withdraw ends an offer that the peer has not accepted and never will, as the engine has
	// learned from the peer. No EvBulk follows.
	Withdraw(s Slot, tok Token)
}

// FastBoxes is an optional capability: a receive that waits for one known peer looks at that
// peer's messages only.
type FastBoxes interface {
	// FastBox returns the incoming messages of a slot, or nil if there are none yet. The
	// result is valid until EvDown or Release of the slot.
	FastBox(s Slot) FastBox
}

// FastBox is the stream of messages of one peer.
type FastBox interface {
	// Take returns the next message of the peer, if it is one that Poll would report as the
	// slot's next EvRecv. It looks at most turns times, without a pause. The payload is
	// valid until the next Take or Poll. Take also invalidates the payloads of earlier
	// events of the slot. It makes no other progress.
	Take(h *wire.Header, turns int) (payload []byte, ok bool)
}

// Drainer is an optional capability of a transport that may lose sent messages if its process
// ends without Close.
type Drainer interface {
	// Drained reports whether a transport that is Flushed would lose nothing.
	Drained() bool
}

// Oversubscriber is an optional capability: the transport omits work that only pays while its
// process does not wait for a processor.
type Oversubscriber interface {
	// Oversubscribed says whether the processes of this host outnumber its processors. It is
	// safe for any goroutine.
	Oversubscribed(bool)
}

// Tunable is an optional capability: the protocol thresholds can be set.
type Tunable interface {
	// SetThresholds sets the thresholds for all peers, from now on.
	SetThresholds(tuning.Table)
}

// Describer is an optional capability: the transport describes its traffic for people.
type Describer interface {
	// Describe returns a text about the traffic with a peer, or "" if there is none.
	Describe(s Slot) string
}

// Reserver is an optional capability: the caller writes a payload directly into the memory
// that Send would copy it to.
type Reserver interface {
	// Reserve returns the memory of the next message to a peer: n bytes, 1 to
	// Caps().EagerMax. It answers as Send would, with the memory if Sent. The caller fills
	// the memory and then calls Commit. It must not read the memory back, because the peer
	// may write there, too. If the caller calls any other method, nothing was sent.
	Reserve(s Slot, n int) ([]byte, Status)

	// Commit sends p, which the last call, Reserve, has returned for s.
	Commit(s Slot, h *wire.Header, p []byte)
}

// Sharer is an optional capability: memory that processes of one host share. Its users
// synchronise by themselves, and must not trust what other processes write there. The methods
// may take long. They are safe for any goroutine, also during other methods of the transport.
type Sharer interface {
	// Share returns n zeroed bytes, aligned to ShareAlign, which stay until Unshare. place
	// identifies them for the processes that Join.
	Share(n int) (mem []byte, place uint64, err error)

	// Unshare takes back memory of Share. All processes that joined must have left.
	Unshare(mem []byte, place uint64)

	// Join maps the n bytes at place of another process until Leave, also after that process
	// has ended. It owns the contact's descriptors in every case. place came from that
	// process and is not trusted: an error means that it cannot be valid.
	Join(c wire.Contact, place uint64, n int) (mem []byte, err error)

	// Attach maps n bytes that all processes with the same key and length share, until Leave.
	// They are zeroed at first. If Preallocated returns true, they are the range x, which the
	// agent has allocated. Then only those pages are usable that the caller has asked the
	// agent for; others are usable once a process that has the memory has called Populate.
	// Attach owns the file of x in every case. HeldArenas returns, as a bit set, the arenas
	// whose files the transport already has.
	Attach(k SharedKey, n int, x wire.ArenaRange) (mem []byte, err error)
	Preallocated() bool
	HeldArenas() uint64

	// Populate makes whole pages of attached memory usable for all processes that map them.
	Populate(mem []byte) error

	// Bell returns the bell of the contact's process. It needs no connection. It owns the
	// contact's descriptors in every case.
	Bell(c wire.Contact) (Bell, error)

	// BellName returns a name by which processes of this host find this process's bell
	// without a contact, or zero if there is none. NamedBell returns the bell of a process by
	// the name that the process has given. The name is not trusted: an error means that it
	// leads to no bell, or that this process may not use it, and the caller should use Bell.
	BellName() [2]uint64
	NamedBell(p wire.ProcID, name [2]uint64) (Bell, error)

	// Leave ends a Join, an Attach, or a Share whose memory others still use. The caller must
	// not use pointers into mem afterwards. Leave may be called after Close.
	Leave(mem []byte)
}

// Bell wakes a process, which then looks at the memory that it shares. Its methods may be
// called after the end of the transport.
type Bell interface {
	Ring()
	Close()
}

// SharedKey identifies memory that processes of one host share: the memory of a communicator,
// with its first rank and its size on this host.
type SharedKey struct {
	Context wire.ContextID
	First   wire.ProcID
	Ranks   int
}

// Checker is an optional capability: the transport detects a message of a peer that can never
// arrive because its memory was damaged.
type Checker interface {
	// Check is called every few seconds. A connection with a message that cannot arrive any
	// more ends with ErrProtocol after two calls on both sides.
	Check()
}

// Collector is an optional capability: the transport reclaims memory of this process that an
// ended process has used.
type Collector interface {
	// Collect says that a process has ended, whether or not there was a connection to it. The
	// transport releases what it holds for a connection to it.
	Collect(proc wire.ProcID)
}

// ShareAlign is the alignment of shared memory: two cache lines, because processors fetch them
// in pairs.
const ShareAlign = 128

// SingleCopy is an optional capability: a process reads and writes memory that other processes
// of its host have exposed, without their help.
type SingleCopy interface {
	// Register lets processes that know the key access buf until Unregister. buf must be on
	// the heap. The engine also registers buffers that Read fills repeatedly.
	Register(buf []byte) (key uint64)
	Unregister(key uint64)

	// Proof returns the key and the contents of eight exposed bytes. Processes that Reach this
	// process read them to check that they reach the right memory.
	Proof() (key, value uint64)

	// Reach returns the memory of another process, if it can be accessed: the value at key
	// must be value. Reach owns the contact's descriptors in every case. The caller must not
	// use the memory after the process is known to be dead.
	Reach(c wire.Contact, key, value uint64) (Memory, error)
}

// Memory is the exposed memory of another process. Unlike a Transport, several goroutines may
// use it at once. off counts bytes from the memory of a key. Access by a key that is no longer
// exposed gives an error or any data. Access outside of the exposed memory need not give an
// error, so the caller must check it. ErrPeerGone means that the process has ended. After an
// error any part of the data may have been copied.
type Memory interface {
	// Read fills dst, at most MaxRead bytes.
	Read(dst []byte, key uint64, off int64) error

	// Write copies src, at most MaxRead bytes.
	Write(src []byte, key uint64, off int64) error

	// ReadRuns and WriteRuns are Read and Write for at most MaxRuns runs, of at most MaxRead
	// bytes together.
	ReadRuns(runs []Run, key uint64) error
	WriteRuns(runs []Run, key uint64) error

	// Writable reports whether Write and WriteRuns may be used: some systems allow reading
	// only.
	Writable() bool
}

// Run is a contiguous piece of memory on both sides.
type Run struct {
	Mem []byte // in this process
	Off int64  // in the other process
}

// MaxRead bounds the bytes of one copy: a longer one would delay a stop of the world. MaxRuns
// bounds the runs of a call: with more runs the cost of each no longer falls.
const (
	MaxRead = 256 << 10
	MaxRuns = 64
)

// Direct is an optional capability of a Memory in the same address space.
type Direct interface {
	// Bytes returns the exposed memory of a key, or nil if there is none.
	Bytes(key uint64) []byte
}

// RemoteMemory is an optional capability: a device, such as a network adapter, reads and
// writes memory that other processes have exposed, on any host and without their help. An
// operation is posted and completes later; operations complete in any order.
type RemoteMemory interface {
	// Expose lets processes that know the key access buf until Hide. buf must not move. Expose
	// writes the key into key, which has MaxKey bytes, and returns its length. Only this
	// transport understands the key.
	Expose(buf []byte, key []byte) (int, error)

	// Hide ends an Expose. After it returns, no access to the memory is under way, and later
	// ones end with ErrHidden.
	Hide(key []byte)

	// Poster returns the way to the memory of another process. It owns the contact's
	// descriptors in every case, and does not wait for the process. The engine has at most
	// one Poster per process at a time.
	Poster(c wire.Contact) (Poster, error)
}

// MaxKey is the maximum length of a key of RemoteMemory, and MaxPost the maximum size of one
// operation, both in bytes.
const (
	MaxKey  = 32
	MaxPost = 16 << 20
)

// Poster posts operations on the memory of one process. Its methods are called as those of a
// Transport are, and cost no more than a request to the device. Each accepted operation ends
// with one EvRemote, at the latest when the device finds that the other process does not
// answer. Then the error is ErrPeerGone if that process may have ended.
type Poster interface {
	// Put writes src to byte off of the memory of key, and Get reads from there into dst.
	// Both are at most MaxPost bytes. src is the caller's again after Sent, or after the
	// EvLocal that follows Queued; dst is the caller's again with EvRemote. Full means that
	// one of this Poster's operations must end first; there is such an operation. Broken
	// means that no operation will be accepted any more.
	Put(src, key []byte, off int64, tok Token) Status
	Get(dst, key []byte, off int64, tok Token) Status

	// Ring starts the posted operations. Before it, a Poster may keep operations back and
	// submit many of them to the device at once.
	Ring()

	// Withdraw ends the use of this process's memory by an operation that is under way. It
	// waits for an access of the device that is going on. The operation still ends with
	// EvRemote: with ErrCancelled, unless it was already done.
	Withdraw(tok Token)

	// Close ends all operations as Withdraw does, but without events.
	Close()
}

// Env is what an engine gives to a transport when it opens it.
type Env struct {
	Self wire.ProcID
	// Secret is the secret of the job: both sides of a handshake prove that they know it.
	// ForeignSecret returns the secret that this process and those of another job share;
	// false means that there is none. It is safe from any goroutine. nil means that there
	// are no other jobs.
	Secret        [32]byte
	ForeignSecret func(job wire.JobID) (secret [32]byte, ok bool)
	// Wake makes the sleeping owner poll. Safe from any goroutine.
	Wake func()
	// Setting returns the value of a setting (GOMPI_*), or "" if it is not set.
	Setting func(name string) string
	// Segment and Bell are this process's own shared segment and eventfd, or
	// -1. The transport does not close them.
	Segment, Bell int
	// Arena is the file whose ranges Attach gets without a descriptor. If its Total is 0,
	// there is none. The transport does not close it.
	Arena wire.ArenaRange
}
