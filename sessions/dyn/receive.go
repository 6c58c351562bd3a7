// SPDX-License-Identifier: Apache-2.0

package dyn

import (
	"slices"

	"gompi/mpi"
	"gompi/sessions"
)

// Type is what a change does to the set with which it is associated.
type Type uint8

// The types. The first three are those of MPI_Session_dyn_recv_res_change.
const (
	None Type = iota // there is none
	Add              // processes come: they are the delta
	Sub              // processes leave: they are the delta
	// Both is a change that replaces processes, for which the published interface has
	// no type: the delta is those who come.
	Both
)

// String gives the type as the paper has it.
func (t Type) String() string {
	return [...]string{"NONE", "ADD", "SUB", "BOTH"}[t&3]
}

// Change is what a process receives of a change.
type Change struct {
	Type  Type
	Delta string // the set of those who come or leave; "" of None
	// Included: the calling process is in Delta.
	Included bool
	// Sets are all sets of those who leave or come: Delta, and of Both, and where
	// newcomers come in several sets, the others. Each of them names the change.
	Sets []string
}

// Receive tells of the change of a set that is to be integrated next; of type None if
// there is none, or if this process has integrated it. "mpi://self", in just this
// spelling, stands for the set of the latest change that has the caller in its delta: a
// newcomer finds so what it has come by, and one that leaves by what it leaves. It is
// information only: the change may yet be taken back, and the delta may be used in any
// operation on sets. One process that calls it tells the others of the delta.
// ErrNoWatch: this process does not follow the set. Local.
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
	f, err := d.of(op, set)
	if err != nil {
		return Change{}, err
	}
	c, err := f.w.Pending()
	if c == nil || err != nil || d.begun[c] != nil {
		return Change{}, err
	}
	return received(c), nil
}

// IReceive starts a Receive: what is received is there when the request is complete.
func (d *Session) IReceive(set string) (*Change, mpi.Request) {
	c := new(Change)
	return c, d.start("Receive", func() (err error) {
		*c, err = d.Receive(set)
		return err
	})
}

// received is a change as the paper has it.
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

// SetOp is an operation that makes a set of two.
type SetOp = sessions.SetOp

// The operations, of MPI_Session_dyn_pset_create_op.
const (
	Union        = sessions.Union
	Difference   = sessions.Difference
	Intersection = sessions.Intersection
)

// PrefName is the key of a preferred name in the info of CreateOp: "x" makes app://x.
const PrefName = "MPI_PSETOP_PREF_NAME"

// CreateOp makes a set of two others and returns its name, which all processes can use
// that have been told of it. Over the delta of a change that is not integrated yet the
// new set belongs to the change, and is gone if that is rolled back; one that has the
// members of what the core makes of the set is that set. Local.
//
// MPI_Session_dyn_pset_create_op of Huber et al., EuroMPI/USA 2022.
func (d *Session) CreateOp(op SetOp, set1, set2 string, info *mpi.Info) (string, error) {
	a := sessions.Algebra{Do: op, In: []string{set1, set2}}
	if name := info.Get(PrefName); name != "" {
		a.Names = []string{name}
	}
	if op == sessions.Split {
		a.Do = 0 // it is none of two sets
	}
	list, err := d.s.Combine(a)
	if err != nil {
		return "", err
	}
	return list[0], nil
}

// ICreateOp starts a CreateOp: the name is there when the request is complete.
func (d *Session) ICreateOp(op SetOp, set1, set2 string, info *mpi.Info) (*string, mpi.Request) {
	name := new(string)
	return name, d.start("CreateOp", func() (err error) {
		*name, err = d.CreateOp(op, set1, set2, info)
		return err
	})
}
