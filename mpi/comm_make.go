// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/data/buffer"

	"gompi/internal/base/fault"
	"gompi/internal/core"
	"gompi/internal/engine"
)

// Communicators made from a communicator.

const (
	opDup    fault.Call = "Dup"
	opIdup   fault.Call = "Idup"
	opSplit  fault.Call = "Split"
	opCreate fault.Call = "Create"
)

// child makes a communicator that c's ranks have agreed on: nil for a process
// that is not a member, and for one that would face an empty group.
func (c *Comm) child(a core.Agreed, g core.Groups, name string) (*Comm, error) {
	if g.Local.Index(c.core.Proc.Self) < 0 || c.core.Both != nil && g.Remote.Len() == 0 {
		a.Decline()
		return nil, nil
	}
	return c.core.proc.newComm(c, a, g, name)
}

// Dup makes a communicator of the same ranks with a context of its own, the
// topology and the error handler of c, and the attributes that their keys'
// callbacks copy. The hints of c are not copied. If a callback fails, so does
// Dup on that process alone. Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) Dup() (*Comm, error) { return c.DupWithInfo(nil) }

// DupWithInfo is Dup that gives the new communicator a copy of info as its
// hints. Collective over c. MPI 4.1 section 7.4.2.
func (c *Comm) DupWithInfo(info *Info) (*Comm, error) {
	if err := c.exists(opDup); err != nil {
		return nil, err
	}
	attrs, failed := c.copyAttrs(opDup)
	a, f := c.core.Agree(opDup, c.user)
	if f != nil {
		return nil, c.giveBack(attrs, c.errorOf(opDup, ProcNull, -1, f))
	}
	d, err := c.child(a, c.core.Groups(), c.Name()+"+")
	if err != nil {
		return nil, c.giveBack(attrs, err)
	}
	return c.furnish(d, attrs, info, failed)
}

// furnish completes a duplicate of c, or gives it up.
func (c *Comm) furnish(d *Comm, attrs []attribute, info *Info, failed error) (*Comm, error) {
	if failed != nil {
		d.Free()
		return nil, failed
	}
	d.core.topo = c.core.topo
	d.core.attrs.list = attrs
	if info != nil {
		d.SetInfo(info)
	}
	return d, nil
}

// Idup starts a Dup. The communicator must not be used before the request is
// complete, nor at all if that gives an error. Collective over c.
// MPI 4.1 section 7.4.2.
func (c *Comm) Idup() (*Comm, Request) { return c.IdupWithInfo(nil) }

// IdupWithInfo starts a DupWithInfo, see Idup. MPI 4.1 section 7.4.2.
func (c *Comm) IdupWithInfo(info *Info) (*Comm, Request) {
	if err := c.exists(opIdup); err != nil {
		return nil, c.failedRequest(opIdup, err)
	}
	info = info.Dup()
	attrs, failed := c.copyAttrs(opIdup)
	agreement := c.core.StartAgree(opIdup, c.user)
	d := c.core.proc.blankComm(c.Name() + "+")
	e := c.core.Engine
	h := e.NewOther(c.core.Ctx, opIdup, buffer.Buf{})
	go func() {
		var err error
		if a, f := agreement.Wait(); f != nil {
			err = c.errorOf(opIdup, ProcNull, -1, f)
		} else {
			err = d.register(c, &a, c.core.Groups())
		}
		if err == nil {
			_, err = c.furnish(d, attrs, info, failed)
		} else {
			err = c.giveBack(attrs, err)
		}
		st := engine.Status{Source: AnySource, Tag: AnyTag}
		if err != nil {
			st.Fault = &fault.Fault{Class: fault.Reported, Peer: -1, Err: err}
		}
		e.Complete(h, st)
	}()
	return d, Request{h}
}

// Split makes a communicator for each color: of the ranks that give it, in the
// order of their keys, equal ones in the order of their ranks. color is not
// negative, or Undefined: then the result is nil. Another color of any rank is
// ErrArg on all. The groups of an intercommunicator are split alike; where one
// has no rank of a color, those of the other get nil. Collective over c.
// MPI 4.1 section 7.4.2.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if err := c.exists(opSplit); err != nil {
		return nil, err
	}
	all, a, f := c.core.Choices(opSplit, c.user, color, key, color >= 0 && c.core.Both == nil)
	if f != nil {
		return nil, c.errorOf(opSplit, ProcNull, -1, f)
	}
	for i, x := range all {
		if x.Color < 0 && x.Color != Undefined {
			a.TakeBack()
			return nil, c.fail(&argFault{class: ErrArg, op: opSplit, err: fmt.Errorf("%s gives color %d", c.core.MemberName(i), x.Color)})
		}
	}
	return c.child(a, a.Chosen(all, color), fmt.Sprintf("%s/%d", c.Name(), color))
}

// Create makes a communicator of the ranks of g, a subgroup of c's group; the
// result is nil on ranks outside it. Ranks may give different groups if those
// have no process in common; GOMPI_CHECK=1 finds members that disagree
// (ErrMismatch). On an intercommunicator each side gives a
// subgroup of its local group; if one side's is empty, the result is nil. A
// process of g that is not in c is ErrRank on the caller. Collective over c;
// CreateGroup needs only the members. MPI 4.1 section 7.4.2.
func (c *Comm) Create(g Group) (*Comm, error) {
	if err := c.exists(opCreate); err != nil {
		return nil, err
	}
	wrong := c.subgroup(opCreate, g)
	name, groups := c.Name()+"*", core.Groups{Local: g.members}
	var a core.Agreed
	var f *fault.Fault
	if c.core.Both != nil {
		color, rank := 0, g.rankOf(c.core.proc)
		if wrong != nil || rank == Undefined {
			color = Undefined
		}
		var all []core.Choice
		if all, a, f = c.core.Choices(opCreate, c.user, color, rank, false); f == nil {
			groups = a.Chosen(all, color)
		}
	} else {
		a, f = c.core.Agree(opCreate, c.user)
	}
	if f != nil {
		return nil, c.errorOf(opCreate, ProcNull, -1, f)
	}
	if f := c.core.SameGroup(opCreate, c.user, g.members); f != nil && wrong == nil {
		wrong = c.errorOf(opCreate, ProcNull, -1, f)
	}
	if wrong != nil {
		a.Decline()
		return nil, wrong
	}
	return c.child(a, groups, name)
}

// subgroup checks that all processes of g are in c.
func (c *Comm) subgroup(op fault.Call, g Group) error {
	if out := g.Difference(c.Group()); out.Size() > 0 {
		return c.fail(&argFault{class: ErrRank, op: op, err: fmt.Errorf("process %v of the group is not in the communicator", out.members.At(0))})
	}
	return nil
}
