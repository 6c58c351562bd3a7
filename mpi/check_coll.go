// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"gompi/collectives"
	"gompi/internal/dtype"
	"gompi/internal/engine"
)

// With GOMPI_CHECK=1 the ranks exchange a description of each collective call
// before it starts: what must be equal, and words for people.
const (
	callKey   = 48
	callWords = 144
	callBytes = callKey + callWords
)

// describe writes the description of a call.
func describe(a *engine.CollArgs, d []byte) {
	var elem, kind int64
	words := a.Op
	if t := a.Out.Type; t != nil {
		elem, kind = t.Size, int64(t.Kind)
		if a.Args.Op == collectives.OpAllgatherv {
			words += engine.Op(fmt.Sprintf(" of %v %s", a.Args.Counts, t.Name))
		} else {
			words += engine.Op(fmt.Sprintf(" of %d %s", a.Args.Count, t.Name))
		}
	}
	switch a.Args.Op {
	case collectives.OpBcast:
		words += engine.Op(fmt.Sprintf(" from root %d", a.Args.Root))
	case collectives.OpAllreduce:
		words += engine.Op(" with " + a.KernelName)
	}
	if a.Tag != 0 {
		words = "persistent " + words
	}
	counts := fnv.New64a()
	for _, n := range a.Args.Counts {
		binary.Write(counts, binary.LittleEndian, n)
	}
	reduction := fnv.New32a()
	reduction.Write([]byte(a.KernelName))
	key := d[:0]
	key = append(key, byte(a.Args.Op), byte(kind))
	key = binary.LittleEndian.AppendUint16(key, uint16(min(a.Tag, 1)))
	key = binary.LittleEndian.AppendUint32(key, reduction.Sum32())
	key = binary.LittleEndian.AppendUint64(key, uint64(a.Args.Root))
	key = binary.LittleEndian.AppendUint64(key, uint64(a.Args.Count))
	key = binary.LittleEndian.AppendUint64(key, uint64(elem))
	binary.LittleEndian.AppendUint64(key, counts.Sum64())
	copy(d[callKey:], words)
}

// announcement is the exchange of descriptions in front of a call.
type announcement struct {
	told engine.Handle
	all  []byte         // the descriptions of all ranks, when told is complete
	tag  engine.CollTag // the number of the call itself
}

// announce starts to tell the other ranks what is called here; why is an error
// that keeps this rank from the call. Both have their numbers afterwards,
// whether or not the call will be made.
func (c *Comm) announce(a *engine.CollArgs, why error) announcement {
	mine := make([]byte, callBytes)
	describe(a, mine)
	if why != nil {
		clear(mine)
		mine[1] = badCall
		copy(mine[callKey:], fmt.Sprintf("%s, which fails there: %v", a.Op, why))
	}
	n := announcement{all: make([]byte, c.core.size*callBytes)}
	x := c.args(a.Op, collectives.OpAllgather)
	x.Args.Count = callBytes
	x.In, x.Out, x.Unit = engine.ByteBuf(mine), engine.ByteBuf(n.all), 1
	c.choose(&x)
	n.told = c.core.e.Icollective(c.core.ctx, &x)
	n.tag = c.core.ctx.NumberColl()
	return n
}

// badCall stands in a description for the kind of element.
const badCall = 255

const _ = badCall - 1 - uint(dtype.NumKinds)

// refuse tells the others that this rank cannot make a collective call, and
// returns why. It does not wait.
func (c *Comm) refuse(a *engine.CollArgs, why error) error {
	if c.core.check != nil {
		c.core.e.Free(c.announce(a, why).told)
	}
	return why
}

// disagree finds the first rank whose call is not that of rank 0. All ranks
// find the same.
func (c *Comm) disagree(op engine.Op, all []byte) error {
	first := all[:callBytes]
	for r := 1; r < c.core.size; r++ {
		d := all[r*callBytes:][:callBytes]
		if !bytes.Equal(d[:callKey], first[:callKey]) {
			return c.argError(ErrMismatch, op, r, -1, -1, -1, "",
				fmt.Errorf("rank %d calls %s, rank 0 calls %s", r, callText(d), callText(first)))
		}
	}
	return nil
}

func callText(d []byte) string { return fmt.Sprintf("%q", bytes.TrimRight(d[callKey:], "\x00")) }

// agree fails on all ranks if they do not make the same call. It waits for
// them.
func (k *checker) agree(c *Comm, a *engine.CollArgs) (engine.CollTag, error) {
	n := c.announce(a, nil)
	if o := c.core.e.Wait(n.told); o.Status.Fault != nil {
		return 0, c.errorOf(a.Op, -1, -1, o.Status.Fault)
	}
	return n.tag, c.disagree(a.Op, n.all)
}

// run is Comm.run with all checks.
func (k *checker) run(c *Comm, a *engine.CollArgs) error {
	u, err := k.begin(c, collUse(a))
	if err != nil {
		return c.refuse(a, err)
	}
	defer k.end(u)
	if a.Tag, err = k.agree(c, a); err != nil {
		return err
	}
	c.chooseBlocking(a)
	if f := c.core.e.Collective(c.core.ctx, a); f != nil {
		return c.errorOf(a.Op, -1, -1, f)
	}
	return nil
}

// start is Comm.start with all checks. It must not wait for the others, so
// the call starts on a goroutine of its own when the ranks have been found to
// agree.
func (k *checker) start(c *Comm, a *engine.CollArgs) Request {
	e, ctx := c.core.e, c.core.ctx
	u, err := k.begin(c, collUse(a))
	if err != nil {
		return c.failedRequest(a.Op, c.refuse(a, err))
	}
	n := c.announce(a, nil)
	call := *a
	call.Tag = n.tag
	c.choose(&call)
	h := e.NewOther(ctx, a.Op)
	k.until(u, h)
	go func() {
		o := e.Wait(n.told)
		if o.Status.Fault == nil {
			if err := c.disagree(call.Op, n.all); err != nil {
				o.Status.Fault = &engine.Fault{Class: engine.Argument, Peer: -1, Err: err}
			} else {
				o = e.Wait(e.Icollective(ctx, &call))
			}
		}
		e.Complete(h, o.Status)
	}()
	return Request{h}
}
