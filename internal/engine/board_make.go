// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"gompi/collectives"
	"gompi/internal/buffer"
	"gompi/internal/fault"
	"gompi/internal/rollcall"
	"gompi/internal/wire"
)

// boardTag is the tag of the collectives in which a board is made: that of a
// persistent collective that no one can have.
const boardTag = persistBit | maxPersistent<<startBits

// boardState: whether a communicator has a board is decided once, by its first
// blocking collective from number boardAfter on, if that succeeds on all ranks.
// A rank on which a collective failed before decides against and tells the
// others, and as no board is made without it, they all do.
type boardState uint8

const (
	boardOpen   boardState = iota
	boardMaking            // it may be given up
	boardLast              // in the last exchange: others may have the board
	boardMade
	boardNever
)

// makingOp is what a second caller is told of, and people who ask.
const makingOp = "set-up of shared memory"

// boardDue makes the board of a communicator when its time has come: at the end
// of a blocking collective with that tag, which has succeeded. It is a part of
// that call, which fails only if its context has ended the communicator with it.
func (e *Engine) boardDue(c *Context, user context.Context, tag int32) *fault.Fault {
	if tag&persistBit != 0 || tag < boardAfter || !c.mayShare() {
		return nil
	}
	// A second caller is told that this one is here.
	r := e.newRequest(reqOther)
	r.op, r.rank, r.tag = makingOp, rollcall.NoPeer, rollcall.NoTag
	c.inside, c.tag, c.givenUp, c.boardState = r, boardTag, nil, boardMaking
	m := making{e: e, c: c, user: user, seq: boardSeq(tag)}
	f := m.make()
	last := c.boardState == boardLast
	if f != nil {
		c.boardState = boardNever
		e.tellAbsent(c, f.Class == fault.Aborted && int(f.Peer) != c.Rank)
	}
	e.freeRequest(r)
	if last && f.Code() == fault.Cancelled {
		return f
	}
	return nil // the call itself has succeeded
}

func (c *Context) mayShare() bool {
	n := c.Members.Len()
	return n > 1 && n <= maxBoardRanks && c.Remote.Len() == 0
}

// mayStart reports whether a part with that tag may follow in the call in which
// a goroutine is.
func (c *Context) mayStart(tag int32) bool {
	return tag == c.tag || tag == boardTag && c.boardState <= boardLast
}

// noBoard decides against a board unless there is one, and tells the others, who
// may not know. One that is being made is given up.
func (e *Engine) noBoard(c *Context) {
	switch c.boardState {
	case boardOpen:
		c.boardState = boardNever
		e.tellAbsent(c, false)
	case boardMaking:
		e.giveUp(c, boardTag, &fault.Fault{Class: fault.Aborted, Peer: int32(c.Rank)})
	}
}

// tellAbsent tells once that this rank is not there when the board is made: the
// others, if they do not know, and rank 0 in any case, because it cannot use the
// memory for anything else before.
func (e *Engine) tellAbsent(c *Context, known bool) {
	was := c.told
	c.told = true
	switch {
	case was || !c.mayShare():
	case !known && c.stepFault() == nil:
		e.tell(c, kindCollFail, wire.PlaneColl, boardTag, 0)
	case c.Rank != 0 && (c.trouble == nil || c.trouble.gone[0] == nil):
		e.control(c.peer(0), c.wireKey(wire.PlaneColl, boardTag), kindCollFail, 0, 0)
	}
}

// absentTold books that a rank is not there when the board is made.
func (e *Engine) absentTold(c *Context, from seat, f *fault.Fault) {
	if !c.mayShare() {
		return
	}
	c.absent.add(int(from.rank()))
	e.absentLater(c.ID, c.procAt(from))
	switch c.boardState {
	case boardMaking, boardLast:
		e.giveUp(c, boardTag, f)
	case boardOpen, boardNever:
		c.boardState = boardNever
		e.tellAbsent(c, true)
	}
}

// absentLater is absentTold of memory that rank 0 has left.
func (e *Engine) absentLater(id wire.ContextID, proc wire.ProcID) {
	for i := range e.retired {
		if r := &e.retired[i]; r.id == id {
			if rank := r.members.Index(proc); rank >= 0 {
				r.absent.add(rank)
				e.reclaimBoards()
				return
			}
		}
	}
}

// making is the part of a call in which the communicator's board is made: rank 0
// gives out memory, all others join it, and if that went well everywhere it is
// the board. The lock is given away in every exchange, and whenever the control
// plane is asked: what stands against going on is looked at after each. Whoever
// does not go on touches the memory no more, and tells.
type making struct {
	e    *Engine
	c    *Context
	user context.Context
	seq  uint32 // of the call
}

func (m *making) make() *fault.Fault {
	e, c, size := m.e, m.c, m.c.Members.Len()
	s := e.sharer()
	var b *board
	var where [16]byte // {there is memory, its place}
	if c.Rank == 0 && s != nil {
		e.reclaimBoards()
		if mem, place, err := s.Share(boardSize(size)); err == nil {
			b = m.view(mem, place)
			where[0] = 1
			binary.LittleEndian.PutUint64(where[8:], place)
		}
	}
	told := where[:]
	if f := m.exchange(collectives.OpBcast, "binomial", nil, told); f != nil {
		m.leave(b)
		return f
	}
	if told[0] == 1 && c.Rank != 0 {
		place := binary.LittleEndian.Uint64(told[8:])
		mem, err := e.join(c.Members.At(0), place, boardSize(size), m.contact)
		if err == nil { // else that cannot be done
			b = m.view(mem, place)
		}
		if f := m.fault(); f != nil {
			m.leave(b)
			return f
		}
	}
	x := e.exposer()
	if size > maxReadRanks {
		x = nil // each would have to be in contact with all
	}
	if b != nil {
		b.startAfter(m.seq)
		if x != nil {
			b.ranks[b.rank].proof[0], b.ranks[b.rank].proof[1] = x.Proof()
		}
	}
	joined, f := m.agree(b != nil)
	if f != nil {
		m.leave(b)
		return f
	}
	if !joined {
		c.boardState = boardNever
		if c.Rank == 0 && b != nil {
			e.unshare(b.mem, b.place) // nobody touches it any more
		} else {
			m.leave(b)
		}
		return nil
	}
	reads := false
	if x != nil {
		if reads, f = m.reachAll(b); f != nil {
			m.leave(b)
			return f
		}
	}
	c.boardState = boardLast
	if reads, f = m.agree(reads); f != nil {
		m.leave(b)
		return f
	}
	if reads {
		b.exposer = x
		b.direct = algorithm(collectives.OpNeighborAllgatherv, "direct")
	}
	c.board, c.boardState = b, boardMade
	c.room.Store(min(b.room, sharedRoom))
	c.reads.Store(reads)
	return nil
}

// view is this rank's view of the memory at place.
func (m *making) view(mem []byte, place uint64) *board {
	b := newBoard(mem, m.c.Rank, m.c.Members.Len())
	b.place = place
	return b
}

// fault is what stands against going on.
func (m *making) fault() *fault.Fault {
	if f := m.c.givenUp; f != nil {
		return f
	}
	return m.c.collFault(boardTag, true)
}

// leave gives up memory that did not become a board.
func (m *making) leave(b *board) {
	switch {
	case b == nil:
	case b.rank != 0 || m.e.closed:
		m.e.sharer().Leave(b.mem)
	default:
		m.e.retire(m.c, b)
	}
}

// exchange runs a collective among the ranks.
func (m *making) exchange(op collectives.Op, alg string, in, out []byte) *fault.Fault {
	n := int64(len(in))
	if in == nil {
		n = int64(len(out))
	}
	a := CollArgs{Op: makingOp, Alg: algorithm(op, alg), User: m.user, In: buffer.Of(in), Out: buffer.Of(out), Unit: 1,
		Args: collectives.Args{Op: op, Rank: m.c.Rank, Size: m.c.Members.Len(), Count: n}}
	inside := m.c.inside
	f := m.e.goOn(m.c, &a)
	m.c.inside = inside
	return f
}

// agree reports whether yes is what all ranks say. It goes along the tree in
// which the ranks have heard of the memory: no others need to be in contact.
func (m *making) agree(yes bool) (bool, *fault.Fault) {
	mine := []byte{0}
	if yes {
		mine[0] = 1
	}
	var all []byte
	if m.c.Rank == 0 {
		all = make([]byte, m.c.Members.Len())
	}
	if f := m.exchange(collectives.OpGather, "binomial", mine, all); f != nil {
		return false, f
	}
	if slices.Contains(all, 0) {
		mine[0] = 0
	}
	f := m.exchange(collectives.OpBcast, "binomial", nil, mine)
	return mine[0] == 1, f
}

// reachAll makes the memory of all ranks readable here, and reports whether that
// can be done.
func (m *making) reachAll(b *board) (bool, *fault.Fault) {
	b.memories = make([]*Memory, b.size)
	for i, r := range b.ranks {
		proc := m.c.Members.At(i)
		if proc == m.e.cfg.Self {
			continue
		}
		far, err := m.e.reachMemory(proc, r.proof, m.contact)
		if f := m.fault(); f != nil {
			return false, f
		}
		if err != nil {
			return false, nil
		}
		b.memories[i] = far
	}
	return true, nil
}

// contact asks the control plane for a process, until there is something against
// going on.
func (m *making) contact(p wire.ProcID) (c wire.Contact, err error) {
	e := m.e
	r := e.newRequest(reqOther)
	r.op, r.ctx, r.user, r.rank, r.tag = makingOp, m.c, m.user, rollcall.NoPeer, rollcall.NoTag
	h := Handle{r, r.gen}
	go func() {
		x, xerr := e.fetchContact(p)
		e.mu.Lock()
		defer e.mu.Unlock()
		if !h.live() || r.done { // nobody waits for it
			if xerr == nil {
				closeContact(x)
			}
			return
		}
		c, err = x, xerr
		e.complete(r)
	}()
	inside := m.c.inside
	m.c.inside = r
	f := e.waitOne(r)
	m.c.inside = inside
	e.freeRequest(r)
	if f != nil {
		return wire.Contact{}, errNotAsked
	}
	return c, err
}

// errNotAsked: why, making.fault tells.
var errNotAsked = errors.New("the control plane was not asked to the end")

func algorithm(op collectives.Op, name string) *collectives.Algorithm {
	g, err := collectives.ByName(op, name)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return g
}

// retired is a board that rank 0 has left and others may still use, or
// memory for one of which others may still hear.
type retired struct {
	b       *board
	id      wire.ContextID
	members wire.Members
	absent  rankSet // who has told not to be there
}

// rankSet has a bit for each rank up to the greatest that was added.
type rankSet []uint64

func (s *rankSet) add(rank int) {
	for rank/64 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[rank/64] |= 1 << (rank % 64)
}

func (s rankSet) has(rank int) bool {
	return rank/64 < len(s) && s[rank/64]&(1<<(rank%64)) != 0
}

// retire keeps the memory of a board until nobody uses it.
func (e *Engine) retire(c *Context, b *board) {
	b.ranks[b.rank].left.Store(1)
	e.retired = append(e.retired, retired{b, c.ID, c.Members, c.absent})
	e.reclaimBoards()
}

// dropBoard ends this rank's use of its board.
func (e *Engine) dropBoard(c *Context) {
	b := c.board
	switch {
	case b == nil:
	case e.closed:
		e.leaveBoard(c)
	case b.rank != 0:
		c.noMoreBoard()
		e.sharer().Leave(b.mem)
	default:
		c.noMoreBoard()
		e.retire(c, b)
	}
}

// noMoreBoard takes the board away from the communicator and says so to the
// others.
func (c *Context) noMoreBoard() {
	if !c.e.left {
		c.board.ranks[c.board.rank].left.Store(1)
	}
	c.board, c.boardState = nil, boardNever
	c.room.Store(0)
	c.reads.Store(false)
}

// reclaimBoards takes back the memory of boards that everybody has left.
func (e *Engine) reclaimBoards() {
	kept := e.retired[:0]
	for _, r := range e.retired {
		if r.inUse(e) {
			kept = append(kept, r)
		} else {
			e.sharer().Unshare(r.b.mem, r.b.place)
		}
	}
	clear(e.retired[len(kept):])
	e.retired = kept
}

func (r *retired) inUse(e *Engine) bool {
	for i, w := range r.b.ranks {
		if w.left.Load() == 0 && !r.absent.has(i) {
			if e.dead[r.members.At(i)] == nil {
				return true
			}
		}
	}
	return false
}

// emptyLimit is how long the end of a process waits for goroutines inside
// operations on boards.
const emptyLimit = time.Second

// emptyBoards waits until no goroutine is inside an operation on a board. They
// come out soon, because the engine is closed; once the others hear that this
// process has left, the memory may become something else, and nothing is written
// there any more.
func (e *Engine) emptyBoards() {
	for end := time.Now().Add(emptyLimit); e.boardsBusy() && time.Now().Before(end); {
		time.Sleep(drainPause)
	}
}

func (e *Engine) boardsBusy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.contexts {
		if c.board != nil && c.inside != nil {
			return true
		}
	}
	return false
}

// leaveBoard is leaveBoards for one communicator. A goroutine that is still
// inside does it when it comes out.
func (e *Engine) leaveBoard(c *Context) {
	if b := c.board; b != nil && c.inside == nil {
		c.noMoreBoard()
		e.sharer().Leave(b.mem)
	}
}

// leaveBoards ends the use of all boards when the process ends. Others may
// still read what this process has published last, so the memory stays.
func (e *Engine) leaveBoards() {
	for _, c := range e.contexts {
		e.leaveBoard(c)
	}
	for _, r := range e.retired {
		e.sharer().Leave(r.b.mem)
	}
	e.retired = nil
}
