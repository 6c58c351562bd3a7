// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"gompi/collectives"
	"gompi/internal/wire"
	"gompi/transport"
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
	boardOpen boardState = iota
	boardMade
	boardNever
)

// boardDue makes the board of a communicator when its time has come: after a
// blocking collective with that tag.
func (e *Engine) boardDue(c *Context, tag int32) {
	if c.boardState != boardOpen || tag&persistBit != 0 || tag < boardAfter || !c.mayShare() {
		return
	}
	// A second caller is told that this one is here.
	c.inside = e.newRequest(reqOther)
	c.inside.op, c.inside.ctx = "set-up of shared memory", c
	e.makeBoard(c)
	e.noBoard(c)
	e.freeRequest(c.inside)
	c.inside = nil
	if e.freeing != 0 {
		e.opEnded(c)
	}
}

func (c *Context) mayShare() bool {
	n := c.Members.Len()
	return n > 1 && n <= maxBoardRanks && c.Remote.Len() == 0
}

// noBoard decides against a board if nothing was decided, and tells the others,
// who may not know.
func (e *Engine) noBoard(c *Context) {
	if c.boardState != boardOpen {
		return
	}
	if c.mayShare() && c.opFault() == nil {
		e.tell(c, kindCollFail, wire.PlaneColl, boardTag, 0)
	}
	c.boardState = boardNever
}

// makeBoard: rank 0 gives out memory, all others join it, and if that went
// well everywhere it is the communicator's board.
func (e *Engine) makeBoard(c *Context) {
	s, size := e.sharer(), c.Members.Len()
	var mem []byte
	var where [16]byte // {there is memory, its place}
	if c.Rank == 0 && s != nil {
		e.reclaimBoards()
		if m, place, err := s.Share(boardSize(size)); err == nil {
			mem = m
			where[0] = 1
			binary.LittleEndian.PutUint64(where[8:], place)
		}
	}
	told := where[:]
	a := CollArgs{Op: "Bcast", Out: ByteBuf(told), Unit: 1,
		Args: collectives.Args{Op: collectives.OpBcast, Rank: c.Rank, Size: size, Count: int64(len(told))}}
	if !e.internal(c, &a, "binomial", boardTag) {
		e.leaveMemory(c, s, mem, binary.LittleEndian.Uint64(told[8:]))
		return
	}
	place := binary.LittleEndian.Uint64(told[8:])
	if told[0] == 1 && c.Rank != 0 {
		mem, _ = e.join(c.Members.At(0), place, boardSize(size)) // nil if that cannot be done
	}
	mine, all := make([]byte, 1), make([]byte, size)
	if mem != nil {
		mine[0] = 1
	}
	var b *board
	x := e.exposer()
	if mem != nil {
		b = newBoard(mem, c.Rank, size)
		b.place = place
		if x != nil {
			b.ranks[b.rank].proof[0], b.ranks[b.rank].proof[1] = x.Proof()
		}
	}
	if !e.allAgree(c, mine, all) {
		e.leaveMemory(c, s, mem, place)
		return
	}
	mine[0] = 0
	if x != nil && e.reachAll(c, b) {
		mine[0] = 1
	}
	reads := e.allAgree(c, mine, all)
	if c.opFault() != nil {
		e.leaveMemory(c, s, mem, place)
		return
	}
	if reads {
		b.exposer = x
		b.direct = algorithm(collectives.OpNeighborAllgatherv, "direct")
	}
	c.board, c.boardState = b, boardMade
	c.room.Store(min(b.room, sharedRoom))
	c.reads.Store(reads)
}

// allAgree reports whether mine is 1 on all ranks.
func (e *Engine) allAgree(c *Context, mine, all []byte) bool {
	a := CollArgs{Op: "Allgather", In: ByteBuf(mine), Out: ByteBuf(all), Unit: 1,
		Args: collectives.Args{Op: collectives.OpAllgather, Rank: c.Rank, Size: len(all), Count: 1}}
	if !e.internal(c, &a, "bruck", boardTag) {
		return false
	}
	for _, yes := range all {
		if yes != 1 {
			return false
		}
	}
	return true
}

// reachAll makes the memory of all ranks readable here. The lock is given away
// meanwhile.
func (e *Engine) reachAll(c *Context, b *board) bool {
	b.memories = make([]transport.Memory, b.size)
	for i, r := range b.ranks {
		proc := c.Members.At(i)
		if proc == e.cfg.Self {
			continue
		}
		m, err := e.reachMemory(proc, r.proof)
		if err != nil {
			return false
		}
		b.memories[i] = m.mem
	}
	return true
}

// internal runs a collective of the library itself.
func (e *Engine) internal(c *Context, a *CollArgs, alg string, tag int32) bool {
	a.Alg = algorithm(a.Args.Op, alg)
	r := e.beginColl(c, a, tag)
	f := e.waitOne(r)
	e.freeRequest(r)
	return f == nil
}

func algorithm(op collectives.Op, name string) *collectives.Algorithm {
	g, err := collectives.ByName(op, name)
	if err != nil {
		panic("gompi: BUG: " + err.Error())
	}
	return g
}

// leaveMemory gives up memory that did not become a board. Others may have
// joined it, but nobody uses it.
func (e *Engine) leaveMemory(c *Context, s transport.Sharer, mem []byte, place uint64) {
	switch {
	case mem == nil:
	case c.Rank == 0:
		e.unshare(mem, place)
	default:
		s.Leave(mem)
	}
}

// retired is a board that rank 0 has left and others may still use.
type retired struct {
	b       *board
	members wire.Members
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
		e.retired = append(e.retired, retired{b, c.Members})
		e.reclaimBoards()
	}
}

// noMoreBoard takes the board away from the communicator and says so to the
// others.
func (c *Context) noMoreBoard() {
	c.board.ranks[c.board.rank].left.Store(1)
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
		if w.left.Load() == 0 {
			if _, dead := e.dead[r.members.At(i)]; !dead {
				return true
			}
		}
	}
	return false
}

// leaveBoard is leaveBoards for one communicator; a goroutine inside an
// operation does it when it comes out.
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
