// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
)

// Groups of processes that have no communicator in common meet at a port, whose name one
// has from the other, or from a service that is published.

const (
	opOpenPort  fault.Call = "OpenPort"
	opClosePort fault.Call = "ClosePort"
	opAccept    fault.Call = "Accept"
	opConnect   fault.Call = "Connect"
	opJoin      fault.Call = "Join"
	opPublish   fault.Call = "PublishName"
	opUnpublish fault.Call = "UnpublishName"
	opLookup    fault.Call = "LookupName"
)

// OpenPort makes a port, and returns its name, which any process may be told, also of
// another job of this user on this host, if both jobs are on that host alone. Every process
// that knows the name may connect. The port exists until ClosePort, or until this process
// ends. Local, but for one round trip to the head. MPI 4.1 section 11.9.1.
func (p *Process) OpenPort() (string, error) {
	return p.askName(nil, opOpenPort, fault.Port, &protocol.Port{})
}

// ClosePort ends a port that this process has opened. A group that waits there gets
// ErrPort. Local, but for one round trip to the head. MPI 4.1 section 11.9.1.
func (p *Process) ClosePort(port string) error {
	var err error
	if port == "" || len(port) > protocol.MaxName {
		return p.portError(opClosePort, &fault.Fault{Class: fault.Port, Peer: -1, Err: fmt.Errorf("a port of %d bytes", len(port))})
	}
	_, err = p.askName(nil, opClosePort, fault.Port, &protocol.Port{Close: port})
	return err
}

// PublishName makes a port known under the name of a service, in the whole job, until
// UnpublishName, or until this process ends. A name that is taken is ErrService. Local,
// but for one round trip to the head. MPI 4.1 section 11.9.4.
func (p *Process) PublishName(service, port string) error {
	return p.name(opPublish, fault.Service, protocol.Service{Do: protocol.Publish, Name: service, Port: port})
}

// UnpublishName takes back what this process has published, else it is ErrService. Local,
// but for one round trip to the head. MPI 4.1 section 11.9.4.
func (p *Process) UnpublishName(service, port string) error {
	return p.name(opUnpublish, fault.Service, protocol.Service{Do: protocol.Unpublish, Name: service, Port: port})
}

// LookupName is the port that a process of the job has published as a service; ErrName if
// none has. Local, but for one round trip to the head. MPI 4.1 section 11.9.4.
func (p *Process) LookupName(service string) (string, error) {
	if err := checkService(service, ""); err != nil {
		return "", p.portError(opLookup, &fault.Fault{Class: fault.Name, Peer: -1, Err: err})
	}
	return p.askName(nil, opLookup, fault.Name, &protocol.Service{Do: protocol.LookUp, Name: service})
}

func (p *Process) name(op fault.Call, class fault.Class, m protocol.Service) error {
	if err := checkService(m.Name, m.Port); err != nil {
		return p.portError(op, &fault.Fault{Class: class, Peer: -1, Err: err})
	}
	_, err := p.askName(nil, op, class, &m)
	return err
}

func checkService(name, port string) error {
	if n := max(len(name), len(port)); name == "" || n > protocol.MaxName {
		return fmt.Errorf("a name of %d bytes and a port of %d, 1 to %d allowed", len(name), len(port), protocol.MaxName)
	}
	return nil
}

// askName asks the head for a name.
func (p *Process) askName(user context.Context, op fault.Call, class fault.Class, m protocol.Message) (string, error) {
	ctx, cancel := p.core.WhileJob(user)
	defer cancel()
	var b protocol.ValueBody
	if err := p.core.Control.Ask(ctx, m, &b); err != nil {
		return "", p.portError(op, core.Refusal(ctx, class, err))
	}
	return string(b.Val), nil
}

func (p *Process) portError(op fault.Call, f *fault.Fault) error {
	var none *Comm
	return none.errorOf(op, ProcNull, -1, f)
}

// Accept waits until a group connects to a port, and makes an intercommunicator between
// that and the group of c. Groups that accept at one port are met in the order in which
// they call. The port counts on root alone, and any process of the job may have opened
// it. The group that connects may be of another job, but neither group may have members of
// both: jobs meet in pairs, and the merged communicator of two neither accepts nor connects to a
// third job (ErrPort). The ranks of two jobs talk by TCP, whatever transports are chosen, and
// share no memory. When that job ends, its processes are dead. It is ErrPort when the port is closed
// or gone. The group is at the port when all its ranks have called, so one whose communicator
// is revoked meets nobody. It gives up when the context of c ends on root: a group that was
// met by then is returned all the same, else nothing of the call is left at the port. If
// another rank of c gives up, the communicator is revoked and the group leaves the port; a
// group that was met just then has a communicator that is revoked (ErrRevoked). A rank whose
// context had ended before the call ends it on all ranks of c (ErrAborted), which keep c. A
// root that c does not have is ErrRoot and revokes c, as others may wait for that rank.
// While a change of process sets is not decided that one of the ranks has a part in it waits
// for the decision. c is an intracommunicator.
// Collective over c. MPI 4.1 section 11.9.2.
func (c *Comm) Accept(port string, root int) (*Comm, error) { return c.meetAt(opAccept, port, root) }

// Connect waits until a group accepts at a port: see Accept. A port that does not exist is
// ErrPort. Collective over c. MPI 4.1 section 11.9.3.
func (c *Comm) Connect(port string, root int) (*Comm, error) { return c.meetAt(opConnect, port, root) }

func (c *Comm) meetAt(op fault.Call, port string, root int) (*Comm, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	if err := c.hasRoot(op, root); err != nil {
		return nil, err
	}
	return c.meet(op, root, fault.Port, &protocol.Connect{Port: port, Accepts: op == opAccept, Members: c.core.Ctx.Members})
}

// hasRoot refuses a call whose root, which leads it, is no rank of c. What the others call
// has several parts, of which some ranks may have made the first: c is revoked, so that
// nobody waits.
func (c *Comm) hasRoot(op fault.Call, root int) error {
	if 0 <= root && root < c.core.Size {
		return nil
	}
	c.Revoke()
	return c.fail(&argFault{class: ErrRoot, op: op, err: fmt.Errorf("root %d of %d ranks", root, c.core.Size)})
}

// meet has root ask the head whom the group of c meets, and makes the intercommunicator.
// class is that of a refusal; m counts on root.
func (c *Comm) meet(op fault.Call, root int, class fault.Class, m protocol.Message) (*Comm, error) {
	p, user := &c.core.proc.core, c.user
	if f := c.core.Entered(op, user); f != nil {
		return nil, c.errorOf(op, ProcNull, -1, f)
	}
	var said []byte
	if c.core.Rank == root {
		var b protocol.ConnectBody
		if f := c.askMeet(op, class, m, &b); f != nil {
			said = append([]byte{byte(f.Class)}, protocol.Clip(f.Err.Error(), protocol.MaxText)...)
		} else {
			said = append([]byte{0}, protocol.Encode(&b)...)
		}
		if user != nil && user.Err() != nil {
			user = nil // the others are told what came of it
		}
	}
	var b protocol.ConnectBody
	told, f := c.core.FromRoot(op, user, root, said, protocol.MaxBody+1)
	if f != nil && c.core.Rank == root && said[0] == 0 && protocol.Decode(&b, said[1:]) == nil {
		c.forsake(op, root, &b)
	}
	said = told
	switch {
	case f != nil:
	case len(said) == 0 || fault.Class(said[0]) >= fault.Reported:
		f = &fault.Fault{Class: fault.Unreachable, Peer: int32(root), Err: errSaid}
	case said[0] != 0:
		return nil, c.fail(&argFault{class: Class(said[0]), op: op, err: errors.New(string(said[1:]))})
	default:
		if err := protocol.Decode(&b, said[1:]); err != nil {
			f = &fault.Fault{Class: fault.Unreachable, Peer: int32(root), Err: fmt.Errorf("%w: %w", errSaid, err)}
		} else if f = c.core.Confirmed(op, user); f != nil {
			c.forsake(op, root, &b)
		}
	}
	if f != nil {
		return nil, c.errorOf(op, ProcNull, -1, f)
	}
	// From now on what it has made says of their ends.
	defer p.Control.ReleaseSet(b.Theirs.Number)
	a, g, f := p.Facing(op, b.Job, b.IDs, b.Mine, b.Theirs)
	if f == nil {
		if f = p.Face(p.Ctx, g.Remote); f != nil {
			c.core.proc.revokeMet(a, g) // the others have it
		}
	}
	if f != nil {
		return nil, c.errorOf(op, ProcNull, -1, f)
	}
	return c.core.proc.newComm(c, a, g, c.Name()+"|")
}

// forsake ends what has come of a meeting of which a rank of this group does not know: the
// others would wait for that.
func (c *Comm) forsake(op fault.Call, root int, b *protocol.ConnectBody) {
	p := c.core.proc
	a, g, f := p.core.Facing(op, b.Job, b.IDs, b.Mine, b.Theirs)
	if f == nil && p.core.Face(p.core.Ctx, g.Remote) == nil {
		p.revokeMet(a, g)
	}
	if c.core.Rank == root { // for all
		_ = p.core.Control.Tell(&protocol.Set{Kind: protocol.KindForsake, Number: b.Theirs.Number}) // the connection is lost: the next call says so
	}
}

// revokeMet makes the communicator with a group that was met unusable for all who have it.
func (p *Process) revokeMet(a core.Agreed, g core.Groups) {
	if d, err := p.newComm(nil, a, g, ""); err == nil {
		d.Revoke()
		_ = d.Free() // nothing is pending on it
	}
}

var errSaid = errors.New("what the root says of the other group cannot be read")

// askMeet is the root's part.
func (c *Comm) askMeet(op fault.Call, class fault.Class, m protocol.Message, b *protocol.ConnectBody) *fault.Fault {
	if at, ok := m.(*protocol.Connect); ok && (at.Port == "" || len(at.Port) > protocol.MaxName) {
		return &fault.Fault{Class: fault.Port, Peer: -1, Err: fmt.Errorf("a port of %d bytes", len(at.Port))}
	}
	return c.core.AskForAll(op, c.user, class, func(ctx context.Context) error { return c.core.proc.core.Control.Ask(ctx, m, b) })
}

// What each end of a Join writes first: a word that no other program begins with, its job
// and its serial, and where its job meets others.
const (
	joinWord  = "gompi-join-2"
	joinBytes = len(joinWord) + 12 + core.WhereBytes
)

// Join makes an intercommunicator between this process and the one at the other end of a
// connection, which calls it, too. Nothing else may be on the connection meanwhile; after
// it the connection may be used again. Both may be of different jobs, if those are of one user
// and on one host. The result is nil where they cannot have a communicator: as when one
// was not started by gompirun, or a job is on several hosts. ctx ends it, if the connection has a
// SetDeadline as those of package net; else who gives up closes the connection. Collective
// over both. MPI 4.1 section 11.10.5.
func (p *Process) Join(ctx context.Context, conn io.ReadWriter) (*Comm, error) {
	if d, ok := conn.(interface{ SetDeadline(time.Time) error }); ok {
		ctx, cancel := p.core.WhileJob(ctx)
		defer cancel()
		defer context.AfterFunc(ctx, func() { d.SetDeadline(time.Unix(1, 0)) })()
	}
	c, err := p.join(ctx, conn)
	if err == nil {
		return c, nil
	}
	if _, ok := err.(*Error); ok {
		return nil, err
	}
	f := &fault.Fault{Class: fault.Unreachable, Peer: -1, Err: err}
	if ctx.Err() != nil {
		f = &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(ctx)}
	}
	return nil, p.portError(opJoin, f)
}

func (p *Process) join(ctx context.Context, conn io.ReadWriter) (*Comm, error) {
	own := p.core.Self
	head := binary.LittleEndian.AppendUint64([]byte(joinWord), uint64(own.Job))
	head = binary.LittleEndian.AppendUint32(head, own.Serial)
	where := p.core.Where()
	head = append(head, where[:]...)
	wrote := make(chan error, 1) // both write first
	go func() {
		_, err := conn.Write(head)
		wrote <- err
	}()
	in := make([]byte, joinBytes)
	if _, err := io.ReadFull(conn, in); err != nil {
		return nil, err
	}
	if err := <-wrote; err != nil {
		return nil, err
	}
	if string(in[:len(joinWord)]) != joinWord {
		return nil, fmt.Errorf("the other end says %q", in)
	}
	other := wire.ProcID{Job: wire.JobID(binary.LittleEndian.Uint64(in[len(joinWord):])), Serial: binary.LittleEndian.Uint32(in[len(joinWord)+8:])}
	theirs := [core.WhereBytes]byte(in[joinBytes-core.WhereBytes:])
	switch {
	case other.Job != own.Job && (where != theirs || where == [core.WhereBytes]byte{}), p.core.Alone():
		return nil, nil
	case other == own:
		return nil, p.portError(opJoin, &fault.Fault{Class: fault.Arg, Peer: -1, Err: errors.New("both ends are this process")})
	}
	self := p.Self().WithContext(ctx)
	if other.Before(own) {
		port, err := readPort(conn)
		if err != nil {
			return nil, err
		}
		return self.Connect(port, 0)
	}
	port, err := p.OpenPort()
	if err != nil {
		_, werr := conn.Write([]byte{0, 0}) // the other end does not wait
		return nil, errors.Join(err, werr)
	}
	defer p.ClosePort(port)
	if _, err := conn.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(port))), port...)); err != nil {
		return nil, err
	}
	return self.Accept(port, 0)
}

func readPort(conn io.Reader) (string, error) {
	var n [2]byte
	if _, err := io.ReadFull(conn, n[:]); err != nil {
		return "", err
	}
	b := make([]byte, binary.LittleEndian.Uint16(n[:]))
	if _, err := io.ReadFull(conn, b); err != nil {
		return "", err
	}
	if len(b) == 0 || len(b) > protocol.MaxName {
		return "", errors.New("the other end has no port")
	}
	return string(b), nil
}
