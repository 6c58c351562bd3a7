// SPDX-License-Identifier: Apache-2.0

package mpi

import (
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
	if f := c.core.Prepare(&a, err); f != nil {
		err = c.errorOf(a.Op, ProcNull, -1, f)
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
