// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"slices"

	"gompi/mpi"
	"gompi/sessions"
)

// Type is what a change does to its set.
type Type uint8

// The types. The first three are those of MPI_Session_dyn_recv_res_change.
const (
	None Type = iota // there is no change
	Add              // processes come: they are the delta
	Sub              // processes leave: they are the delta
	// Both is a change that replaces processes: the newcomers are the delta. The published
	// interface has no such type.
	Both
)

// String returns the paper's name of the type.
func (t Type) String() string {
	return [...]string{"NONE", "ADD", "SUB", "BOTH"}[t&3]
}

// Change is a change as Receive returns it.
type Change struct {
	Type  Type
	Delta string // the set of the processes that come or leave; "" for None
	// Included: the calling process is in Delta.
	Included bool
	// Sets are all sets of processes that come or leave: Delta first. There are several
	// for Both, and where newcomers come in several sets. Each of them names the change.
	Sets []string
}

// Receive returns the next change of a set to integrate. Its type is None if there is
// none, or if this process has integrated it. "mpi://self", in just this spelling, stands
// for the set of the latest change that has the caller in its delta: with it a newcomer
// finds the change that it was started for, and a leaver the one by which it leaves.
//
// Local. One process calls it and sends the others the delta. It accepts nothing: the
// change may still be withdrawn. The delta may be used in any operation on sets.
//
// Error: mpi.ErrNoWatch if this process does not follow the set.
//
// MPI_Session_dyn_recv_res_change of Huber et al., EuroMPI/USA 2022.
func (d *Session) Receive(set string) (Change, error) {
	const op = "Receive"
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(op); err != nil {
		return Change{}, err
	}
	if set == latest {
		if c := d.joined; c != nil && d.begun[c] == nil {
			x := received(c)
			x.Included = true
			var err error
			x.Delta, err = d.s.Name("mpi://WORLD")
			return x, err
		}
		for _, f := range d.list {
			if c, err := f.w.Pending(); err != nil {
				return Change{}, err
			} else if c != nil && c.Role == sessions.Leaving && d.begun[c] == nil {
				x := received(c)
				if x.Delta = c.Leaving; x.Type == Both {
					x.Type = Sub
				}
				x.Included = true
				return x, nil
			}
		}
		return Change{}, nil
	}
	f, err := d.subscriptionOf(op, set)
	if err != nil {
		return Change{}, err
	}
	c, err := f.w.Pending()
	if c == nil || err != nil || d.begun[c] != nil {
		return Change{}, err
	}
	return received(c), nil
}

// IReceive starts a Receive. Local. The change may be read when the request is complete.
func (d *Session) IReceive(set string) (*Change, mpi.Request) {
	c := new(Change)
	return c, d.start("Receive", func() (err error) {
		*c, err = d.Receive(set)
		return err
	})
}

// received returns a change in the terms of the paper.
func received(c *sessions.Change) Change {
	x := Change{Sets: slices.Clone(c.Joining)}
	switch {
	case c.Leaving == "":
		x.Type = Add
	case len(c.Joining) == 0:
		x.Type = Sub
	default:
		x.Type = Both
	}
	if c.Leaving != "" {
		x.Sets = append(x.Sets, c.Leaving)
	}
	if len(x.Sets) > 0 {
		x.Delta = x.Sets[0]
	}
	x.Included = c.Role == sessions.Joining && slices.Contains(c.Joining, x.Delta) || c.Role == sessions.Leaving && x.Delta == c.Leaving
	return x
}

// SetOp is an operation that makes a set of two others.
type SetOp = sessions.SetOp

// The operations of MPI_Session_dyn_pset_create_op.
const (
	Union        = sessions.Union
	Difference   = sessions.Difference
	Intersection = sessions.Intersection
)

// PrefName is the key of a preferred name in the info of CreateOp: "x" becomes app://x.
const PrefName = "MPI_PSETOP_PREF_NAME"

// CreateOp makes a set of two others and returns its name, which all processes can use.
// Local, but for one round trip to the head. A set that is made of the delta of a change
// belongs to the change until that is integrated, and is gone if the change is rolled back.
// A set with the members of the change's Result is that set. Errors: those of
// sessions.Session.Combine.
//
// MPI_Session_dyn_pset_create_op of Huber et al., EuroMPI/USA 2022.
func (d *Session) CreateOp(op SetOp, set1, set2 string, info *mpi.Info) (string, error) {
	a := sessions.Algebra{Do: op, In: []string{set1, set2}}
	if name := info.Get(PrefName); name != "" {
		a.Names = []string{name}
	}
	if op == sessions.Split {
		a.Do = 0 // it does not combine two sets
	}
	list, err := d.s.Combine(a)
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// ICreateOp starts a CreateOp. Local. The name may be read when the request is complete.
func (d *Session) ICreateOp(op SetOp, set1, set2 string, info *mpi.Info) (*string, mpi.Request) {
	name := new(string)
	return name, d.start("CreateOp", func() (err error) {
		*name, err = d.CreateOp(op, set1, set2, info)
		return err
	})
}
