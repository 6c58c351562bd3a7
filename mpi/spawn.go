// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/internal/engine"
)

// Processes that are started by others.

const (
	opSpawn             fault.Call = "Spawn"
	opIspawn            fault.Call = "Ispawn"
	opCommSpawn         fault.Call = "CommSpawn"
	opCommSpawnMultiple fault.Call = "CommSpawnMultiple"
	opParent            fault.Call = "Parent"
	opSignal            fault.Call = "Signal"
)

// Spawned is what came of Spawn and Ispawn.
type Spawned struct {
	// Set is the name of the new processes' set, which is mpi://WORLD of each of them:
	// package sessions makes groups and communicators of it. It lives as long as one of
	// them, or somebody who holds it.
	Set string
	// Errors are the error codes, for each process that was asked for, command after
	// command: nil for those that run.
	Errors []error
}

// CommSpawn starts the processes of a command, and makes an intercommunicator between
// the group of comm and them, in which they are ranks in the order in which they stand in
// their own world: see Process.Parent. It returns when all of them have joined the job;
// if one ends before, or some cannot be started, none is left, and the error, of class
// ErrSpawn, says why. The codes say it of each process that was asked for: nil for those
// that run. With Soft fewer may run.
//
// The processes take slots. If there are too few just now it waits for those of processes
// that are about to end, for seconds, and is refused then. While a change of process sets
// is not decided that a rank of comm has a part in, it waits for the decision. It gives up
// when the context of comm ends on root, or comm is revoked, as when it ends on another
// rank: what was started is then ended.
//
// comm is an intracommunicator; cmd counts on root alone. A root that comm does not have is
// ErrRoot and revokes comm (not of Ispawn), as others may wait for that rank. Deaths of the new processes
// are like those of others: without --ft they end the job. Collective over comm.
// MPI 4.1 section 11.8.2.
func CommSpawn(comm *Comm, cmd Command, root int) (*Comm, []error, error) {
	return comm.spawnFamily(opCommSpawn, []Command{cmd}, root)
}

// CommSpawnMultiple is CommSpawn of several commands, whose processes are one world, in
// the order of the commands. Collective over comm. MPI 4.1 section 11.8.3.
func CommSpawnMultiple(comm *Comm, cmds []Command, root int) (*Comm, []error, error) {
	return comm.spawnFamily(opCommSpawnMultiple, cmds, root)
}

// Spawn starts the processes of some commands, which are one world, and makes no
// communicator: it returns when all are started, whether or not they are MPI programs.
// Their mpi://PARENT is the group of comm. Else it is as CommSpawnMultiple; giving up
// ends nothing that was started. Collective over comm. Proposed for MPI 6 as MPI_Spawn
// (MPI Forum issue 1116).
func Spawn(comm *Comm, cmds []Command, root int) (Spawned, error) {
	q, err := comm.spawns(opSpawn, cmds, root, false)
	if err != nil {
		return Spawned{}, err
	}
	x, err := comm.spawn(opSpawn, q, root)
	return Spawned{Set: x.body.World.URI, Errors: x.errors(comm, opSpawn)}, err
}

// Ispawn starts a Spawn, whose result is there when the request is complete. The commands
// may be used again at once. Collective over comm, in the order of the other calls on it.
// Proposed for MPI 6 as MPI_Ispawn (MPI Forum issue 1116).
func Ispawn(comm *Comm, cmds []Command, root int) (*Spawned, Request) {
	q, err := comm.spawns(opIspawn, cmds, root, false)
	if err != nil {
		return nil, comm.failedRequest(opIspawn, err)
	}
	agreement := comm.core.StartAgree(opIspawn, comm.user)
	d, s := comm.core.proc.blankComm(comm.Name()+"+"), new(Spawned)
	e := comm.core.Engine
	h := e.NewOther(comm.core.Ctx, opIspawn, buffer.Buf{})
	go func() {
		var err error
		if a, f := agreement.Wait(); f != nil {
			err = comm.errorOf(opIspawn, ProcNull, -1, f)
		} else if err = d.register(comm, &a, comm.core.Groups()); err == nil {
			d.user = comm.user
			var x answer
			x, err = d.spawn(opIspawn, q, root)
			s.Set, s.Errors = x.body.World.URI, x.errors(d, opIspawn)
			err = errors.Join(err, d.Free())
		}
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if err != nil {
			st.Fault = &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
		}
		e.Complete(h, st)
	}()
	return s, Request{h}
}

// spawnFamily is CommSpawn of several commands.
func (c *Comm) spawnFamily(op fault.Call, cmds []Command, root int) (*Comm, []error, error) {
	q, err := c.spawns(op, cmds, root, true)
	if err != nil {
		return nil, nil, err
	}
	x, err := c.spawn(op, q, root)
	if err != nil {
		return nil, x.errors(c, op), err
	}
	p := c.core.proc
	// From now on what it has made says of their ends.
	defer p.core.Control.ReleaseSet(x.body.World.Number)
	a, g, f := p.core.Facing(op, p.core.Self.Job, x.body.Parent.Number, x.body.Parent, x.body.World)
	if f != nil {
		return nil, nil, c.errorOf(op, ProcNull, -1, f)
	}
	d, err := p.newComm(c, a, g, c.Name()+">")
	return d, x.errors(c, op), err
}

// asked is what the root of a spawn asks for.
type asked struct {
	m   protocol.Spawn
	why error // it cannot be asked for
}

// spawns checks what the caller gives. What is wrong with the commands the root tells
// the others, who wait for it.
func (c *Comm) spawns(op fault.Call, cmds []Command, root int, joins bool) (*asked, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	q := &asked{m: protocol.Spawn{Parents: c.core.Ctx.Members, Joins: joins}}
	if c.core.Rank != root {
		return q, nil
	}
	for i := range cmds {
		part, err := cmds[i].part()
		if err != nil {
			if q.why = err; len(cmds) > 1 {
				q.why = fmt.Errorf("command %d: %w", i, err)
			}
			break
		}
		q.m.Parts = append(q.m.Parts, part)
	}
	n := 0
	for i := range q.m.Parts {
		n += q.m.Parts[i].N
	}
	switch {
	case len(cmds) == 0:
		q.why = errors.New("no command")
	case n > protocol.MaxSpawn:
		q.why = fmt.Errorf("%d processes, at most %d allowed", n, protocol.MaxSpawn)
	}
	return q, nil
}

// spawn has the root ask, and all ranks know what came of it.
func (c *Comm) spawn(op fault.Call, q *asked, root int) (answer, error) {
	var x answer
	if err := c.hasRoot(op, root); err != nil {
		return x, err
	}
	user := c.user
	if f := c.core.Entered(op, user); f != nil {
		return x, c.errorOf(op, ProcNull, -1, f)
	}
	switch {
	case c.core.Rank != root:
	case q.why != nil:
		x.class, x.text = fault.Arg, q.why.Error()
	default:
		p := &c.core.proc.core
		f := c.core.AskForAll(op, user, fault.Spawn, func(ctx context.Context) (err error) {
			x.body, err = p.Control.SpawnAll(ctx, &q.m)
			return err
		})
		if f != nil {
			x.class, x.text = f.Class, f.Err.Error()
		}
		if user != nil && user.Err() != nil {
			user = nil // the others are told what came of it
		}
		for i := range q.m.Parts {
			x.asked = append(x.asked, uint32(q.m.Parts[i].N))
		}
		if !q.m.Joins && f == nil {
			defer p.Control.ReleaseSet(x.body.World.Number)
		}
	}
	told, f := c.core.FromRoot(op, user, root, x.encode(), maxAnswer)
	if f == nil && q.m.Joins && len(told) > 0 && fault.Class(told[0]) == fault.OK { // who makes a communicator knows that all do
		f = c.core.Confirmed(op, user)
	}
	if f != nil {
		if q.m.Joins && x.body.World.Number != 0 {
			_ = c.core.Proc.Control.Tell(&protocol.Set{Kind: protocol.KindForsake, Number: x.body.World.Number}) // the connection is lost: the next call says so
		}
		return answer{}, c.errorOf(op, ProcNull, -1, f)
	}
	if c.core.Rank != root {
		if err := x.decode(told); err != nil {
			return answer{}, c.errorOf(op, int32(root), -1, &fault.Fault{Class: fault.Unreachable, Peer: int32(root), Err: err})
		}
	}
	if x.class != fault.OK {
		return x, c.fail(&argFault{class: Class(x.class), op: op, err: errors.New(x.text)})
	}
	return x, nil
}

// Parent is the intercommunicator between the processes that were spawned with this one,
// whose ranks are those of the world, and the group of the communicator of CommSpawn; nil
// for a process that nobody has spawned so, and when it was freed. It is made at first
// use, and is the same for all callers. Local. MPI 4.1 section 11.8.4,
// MPI_Comm_get_parent.
//
// A process that was started by a request (package proc) waits here until it is attached:
// the local group is then those that are attached with it. nil if it never will be, as
// its request was freed, or the process that has it has ended.
func (p *Process) Parent() (*Comm, error) {
	if p.core.Late {
		return p.lateParent()
	}
	if !p.core.Family {
		return nil, nil
	}
	p.rootMu.Lock()
	defer p.rootMu.Unlock()
	if p.parent != nil {
		if p.parent.core.Ctx.Freed() {
			return nil, nil
		}
		return p.parent, nil
	}
	a, g, f := p.core.Facing(opParent, p.core.Self.Job, p.core.Parent.Number, p.core.World, p.core.Parent)
	if f != nil {
		var none *Comm
		return nil, none.errorOf(opParent, ProcNull, -1, f)
	}
	c, err := p.newComm(nil, a, g, "PARENT")
	if err == nil {
		p.parent = c
	}
	return c, err
}

// lateParent is Parent of a process that others attach.
func (p *Process) lateParent() (*Comm, error) {
	p.lateMu.Lock()
	defer p.lateMu.Unlock()
	if c := p.parent; c != nil {
		if c.core.Ctx.Freed() {
			return nil, nil
		}
		return c, nil
	}
	var b protocol.ConnectBody
	stop := p.core.Noted(opParent)
	err := p.core.Control.Ask(p.core.Ctx, &protocol.Empty{Kind: protocol.KindAttachment}, &b)
	stop()
	switch {
	case errors.Is(err, protocol.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, p.portError(opParent, core.Refusal(p.core.Ctx, fault.Spawn, err))
	}
	defer p.core.Control.ReleaseSet(b.Theirs.Number)
	a, g, f := p.core.Facing(opParent, b.Job, b.IDs, b.Mine, b.Theirs)
	if f != nil {
		return nil, p.portError(opParent, f)
	}
	c, err := p.newComm(nil, a, g, "PARENT")
	if err == nil {
		p.parent = c
	}
	return c, err
}

// Signal sends a signal of the operating system to processes, and what they have started,
// that this one has had a part in spawning: it was in the group of the communicator of
// their spawn. Processes that have ended are passed over. What a signal does to a process counts as if
// it had come from elsewhere: without --ft a death by it ends the job. It is ErrArg for a
// signal that there is not, ErrSpawn for processes that others have spawned. Local, but
// for one round trip to the head. Gropp and Lusk, Dynamic Process Management in an MPI
// Setting (1995), MPI_Signal.
func (p *Process) Signal(g Group, signal syscall.Signal) error {
	if signal < 1 || signal > protocol.MaxSignal {
		return p.portError(opSignal, &fault.Fault{Class: fault.Arg, Peer: -1, Err: fmt.Errorf("signal %d", int(signal))})
	}
	if err := p.core.Control.Ask(p.core.Ctx, &protocol.Signal{Signal: uint8(signal), Members: g.members}, &protocol.Empty{}); err != nil {
		return p.portError(opSignal, core.Refusal(p.core.Ctx, fault.Spawn, err))
	}
	return nil
}

// answer is what the root of a spawn tells the others.
type answer struct {
	class fault.Class // fault.OK: it has happened
	text  string      // why not
	asked []uint32    // processes of each command
	body  protocol.SpawnBody
}

// maxAnswer bounds it, in bytes.
const maxAnswer = protocol.MaxBody + 8*protocol.MaxCommands + 64

func (x *answer) encode() []byte {
	b := []byte{byte(x.class)}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(x.asked)))
	for _, n := range x.asked {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	text := protocol.Clip(x.text, protocol.MaxText)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	return append(b, protocol.Encode(&x.body)...)
}

var errAnswer = errors.New("what the root says of a spawn cannot be read")

func (x *answer) decode(b []byte) error {
	word := func() uint32 {
		if len(b) < 4 {
			b = nil
			return 0
		}
		n := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return n
	}
	if len(b) < 9 || fault.Class(b[0]) >= fault.Reported {
		return errAnswer
	}
	x.class, b = fault.Class(b[0]), b[1:]
	n := word()
	if n > protocol.MaxCommands {
		return errAnswer
	}
	total := 0
	for range n {
		x.asked = append(x.asked, word())
		if total += int(x.asked[len(x.asked)-1]); total > protocol.MaxSpawn {
			return errAnswer
		}
	}
	if n = word(); uint64(n) > uint64(len(b)) {
		return errAnswer
	}
	x.text, b = string(b[:n]), b[n:]
	if err := protocol.Decode(&x.body, b); err != nil {
		return fmt.Errorf("%w: %w", errAnswer, err)
	}
	return nil
}

var (
	errNoSlot = errors.New("no slot was free for it")
	errOthers = errors.New("not started: one beside it could not be")
)

// errors are the error codes.
func (x *answer) errors(c *Comm, op fault.Call) []error {
	var codes []error
	for part, asked := range x.asked {
		why := errNoSlot
		switch {
		case x.class == fault.OK:
		case x.body.Text != "" && int(x.body.Part) == part, x.body.Text != "" && int(x.body.Part) >= len(x.asked):
			why = errors.New(x.body.Text)
		case x.body.Text != "":
			why = errOthers
		default:
			why = errors.New(x.text)
		}
		code := c.newError(&argFault{class: ErrSpawn, op: op, err: why})
		for i := range asked {
			if x.class == fault.OK && part < len(x.body.Counts) && i < x.body.Counts[part] {
				codes = append(codes, nil)
			} else {
				codes = append(codes, code)
			}
		}
	}
	return codes
}
