// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gompi/internal/base/fault"
	"gompi/internal/control/protocol"
	"gompi/internal/core"
	"gompi/mpi"
)

const (
	opIaccept  fault.Call = "Iaccept"
	opIcontact fault.Call = "Icontact"
)

// ContactKind is the kind of the requests of Iaccept and Icontact. A request is active until
// it has met a process of the other side, and inactive then. RemoteAttach connects the groups
// of both ends, once; after that Start waits for another process. Free ends the wait, and
// drops a process that was met and not attached: the other end gets mpi.ErrRevoked.
var ContactKind = &mpi.RequestKind{Name: "Contact", Start: restart, Free: freeContacts}

// service is a name under which others find this process.
type service struct {
	p    *mpi.Process
	name string
	port string // "": of Icontact

	mu   sync.Mutex
	live int // requests that are not freed
}

// contact is the state of a request. Its lock guards what follows it.
type contact struct {
	of *service

	mu     sync.Mutex
	cancel context.CancelFunc // of the wait
	gaveUp bool               // by Cancel
	freed  bool
	met    *mpi.Comm // with the process at the other end; nil: not met, or attached
	why    error     // why no process was met
}

// contactOf returns the state of op; nil: op is of another kind.
func contactOf(op *mpi.Persistent) *contact {
	if op == nil || op.Kind() != ContactKind {
		return nil
	}
	return op.State().(*contact)
}

// Iaccept publishes a well-known name, and returns active requests for the next n processes
// that contact it. To accept more, Start the requests again. Local, but for two round trips to
// the head. The name is published until the last request is freed, or the process ends.
// Errors: mpi.ErrService for a name that is taken, also by an Iaccept with a request that is
// not freed; mpi.ErrArg for n below 1. MPI_Iaccept of Gropp and Lusk.
func Iaccept(p *mpi.Process, name string, n int) ([]*mpi.Persistent, error) {
	if n < 1 {
		return nil, p.Self().Core().Fail(fault.Arg, opIaccept, mpi.ProcNull, -1, -1, "", fmt.Errorf("%d requests", n))
	}
	port, err := p.OpenPort()
	if err != nil {
		return nil, err
	}
	if err := p.PublishName(name, port); err != nil {
		return nil, errors.Join(err, p.ClosePort(port))
	}
	s := &service{p: p, name: name, port: port, live: n}
	ops := make([]*mpi.Persistent, n)
	for i := range ops {
		ops[i] = s.request()
	}
	return ops, nil
}

// Icontact returns an active request that waits until Iaccept publishes a name, and until a
// request of that Iaccept meets it. Local. MPI_Icontact of Gropp and Lusk.
func Icontact(p *mpi.Process, name string) *mpi.Persistent {
	return (&service{p: p, name: name, live: 1}).request()
}

func (s *service) request() *mpi.Persistent {
	x := &contact{of: s}
	return s.p.NewPersistent(ContactKind, x, x.begin())
}

// ServerConnect accepts one group that contacts a name: it does Iaccept, Wait and
// RemoteAttach on root, and frees the request. Collective over c. Only root needs the name.
// Errors: those of Iaccept and RemoteAttach.
// MPI_Server_connect of Gropp and Lusk.
func ServerConnect(c *mpi.Comm, name string, root int) (*mpi.Comm, error) {
	return connect(c, root, func(p *mpi.Process) (*mpi.Persistent, error) {
		ops, err := Iaccept(p, name, 1)
		if err != nil {
			return nil, err
		}
		return ops[0], nil
	})
}

// ClientConnect contacts a name: it does Icontact, Wait and RemoteAttach on root, and frees
// the request. Collective over c. Only root needs the name. Errors: those of RemoteAttach.
// MPI_Client_connect of Gropp and Lusk.
func ClientConnect(c *mpi.Comm, name string, root int) (*mpi.Comm, error) {
	return connect(c, root, func(p *mpi.Process) (*mpi.Persistent, error) { return Icontact(p, name), nil })
}

func connect(c *mpi.Comm, root int, begin func(p *mpi.Process) (*mpi.Persistent, error)) (*mpi.Comm, error) {
	if c.Rank() != root {
		return RemoteAttach(c)
	}
	op, why := begin(c.Process())
	if why == nil {
		stop := context.AfterFunc(c.Core().User(), func() { _ = op.Cancel() }) // or it is complete
		var st mpi.Status
		if st, why = op.Wait(); st.Cancelled {
			why = c.Core().Fault(opIcontact, mpi.ProcNull, &fault.Fault{Class: fault.Cancelled, Peer: -1, Err: context.Cause(c.Core().User())})
		}
		stop()
		if why != nil {
			why = errors.Join(why, op.Free())
		}
	}
	if why != nil {
		_, _ = RemoteAttach(c.WithContext(context.Background()), nil) // tells the others
		return nil, why
	}
	d, err := RemoteAttach(c, op)
	return d, errors.Join(err, op.Free())
}

// begin waits for the other end.
func (x *contact) begin() mpi.Request {
	ctx, cancel := x.of.p.Core().Process().WhileJob(nil)
	x.mu.Lock()
	x.cancel, x.why, x.gaveUp = cancel, nil, false
	x.mu.Unlock()
	r := x.of.p.GrequestStart(mpi.Grequest{Query: x.query, Cancel: x.giveUp})
	go func() {
		defer cancel()
		met, err := x.of.meet(ctx)
		x.mu.Lock()
		x.met, x.why = met, err
		x.gaveUp = x.gaveUp && err != nil
		if x.freed {
			x.drop()
		}
		x.mu.Unlock()
		_ = r.GrequestComplete() // this goroutine alone completes it
	}()
	return r
}

// meet waits until a process of the other side is there.
func (s *service) meet(ctx context.Context) (*mpi.Comm, error) {
	self := s.p.Self().WithContext(ctx)
	if s.port != "" {
		return self.Accept(s.port, 0)
	}
	for last := ""; ; {
		var b protocol.ValueBody
		if err := s.p.Core().Process().Control.Ask(ctx, &protocol.Service{Do: protocol.AwaitName, Name: s.name}, &b); err != nil {
			return nil, self.Core().Fault(opIcontact, mpi.ProcNull, core.Refusal(ctx, fault.Name, err))
		}
		port := string(b.Val)
		met, err := self.Connect(port, 0)
		if !errors.Is(err, mpi.ErrPort) || port == last {
			return met, err
		}
		last = port // it was closed while it met others: wait for the next port of the name
	}
}

func (x *contact) query(st *mpi.Status) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if st.Cancelled = x.gaveUp; x.gaveUp {
		return nil
	}
	return x.why
}

func (x *contact) giveUp(complete bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.gaveUp = x.gaveUp || !complete
	x.cancel()
	return nil
}

// ready reports whether a process was met that is not attached.
func (x *contact) ready() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.met != nil
}

// take returns the communicator with the process that was met, once.
func (x *contact) take() *mpi.Comm {
	x.mu.Lock()
	defer x.mu.Unlock()
	met := x.met
	x.met = nil
	return met
}

// drop revokes the communicator with a process that was met; mu is held.
func (x *contact) drop() {
	if x.met != nil {
		x.met.Revoke()
		_ = x.met.Free() // nothing is pending on it
		x.met = nil
	}
}

// restart is Start of ContactKind.
func restart(ops []*mpi.Persistent) ([]mpi.Request, error) {
	for _, op := range ops {
		if x := op.State().(*contact); x.ready() {
			return nil, x.of.p.Self().Core().Fail(fault.Request, opIaccept, mpi.ProcNull, -1, -1, "", errors.New("the process that was met is not attached yet"))
		}
	}
	reqs := make([]mpi.Request, len(ops))
	for i, op := range ops {
		reqs[i] = op.State().(*contact).begin()
	}
	return reqs, nil
}

// freeContacts is Free of ContactKind.
func freeContacts(ops []*mpi.Persistent) error {
	var all error
	for _, op := range ops {
		x := op.State().(*contact)
		x.mu.Lock()
		x.freed = true
		x.cancel()
		x.drop()
		x.mu.Unlock()
		all = errors.Join(all, x.of.release())
	}
	return all
}

// release notes that a request is freed. After the last one the name is not published.
func (s *service) release() error {
	s.mu.Lock()
	s.live--
	last := s.live == 0 && s.port != ""
	s.mu.Unlock()
	if !last {
		return nil
	}
	return errors.Join(s.p.UnpublishName(s.name, s.port), s.p.ClosePort(s.port))
}

// attachTag is the tag of the messages between the leaders, on a communicator of their own.
const attachTag = 1

// attachContact connects the groups of both ends of a contact. The rank leader of c has its
// request.
func attachContact(c *mpi.Comm, leader int, ops []*mpi.Persistent) (*mpi.Comm, error) {
	if c.Rank() != leader {
		return c.IntercommCreate(leader, nil, 0, attachTag)
	}
	met := contactOf(ops[0]).take()
	peer, err := met.WithContext(c.Core().User()).IntercommMerge(false)
	if err != nil {
		met.Revoke()
		// The others wait for the leader, which has no other one to meet.
		_, why := c.IntercommCreate(leader, nil, 0, attachTag)
		return nil, errors.Join(err, why, met.Free())
	}
	d, err := c.IntercommCreate(leader, peer, 1-peer.Rank(), attachTag)
	return d, errors.Join(err, peer.Free(), met.Free())
}
