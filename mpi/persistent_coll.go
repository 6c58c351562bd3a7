// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"fmt"

	"gompi/internal/engine"
)

// collInit numbers the operation even if its arguments are wrong: the other
// ranks count it too.
func (c *Comm) collInit(a engine.CollArgs, err error) *Persistent {
	p := &Persistent{c: c, op: a.Op, err: err, status: emptyStatus()}
	if c == nil {
		return p
	}
	a.Keep = nil // the vectors are p's
	a.Tag = c.core.Ctx.NumberPersistent()
	if err == nil && a.Tag == 0 {
		err = c.argError(ErrArg, a.Op, ProcNull, -1, -1, -1, "",
			fmt.Errorf("the communicator has no number left for a persistent collective: use Dup"))
	}
	if k := c.core.check; k != nil {
		if err == nil {
			err = k.apart(c, &a)
		}
		if err == nil {
			_, err = k.agree(c, &a)
		} else {
			c.refuse(&a, err)
		}
	}
	if err == nil {
		c.core.Choose(&a)
	}
	p.kind, p.coll, p.err = collKind, a, err
	return p
}

// refused is a Start of an operation whose arguments are wrong. Of a collective
// the other ranks hear of it: they may have started theirs.
func (p *Persistent) refused() error {
	p.refuse()
	return p.err
}

// refuse tells the others that a collective is not started here.
func (p *Persistent) refuse() {
	if p.kind == collKind && p.coll.Tag != 0 {
		p.c.core.Engine.Refuse(p.c.core.Ctx, &p.coll)
	}
}
