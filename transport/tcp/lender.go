// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"golang.org/x/sys/unix"

	"gompi/internal/host/cachedist"
	"gompi/internal/host/mem"
)

// To a far processor of the same host the copy into the kernel's own pages, which the
// receiver's processor has read last, costs three times of what it costs to a near one. So
// the payload of a large transfer is copied past the cache into pages of ours, and the
// kernel is lent these: vmsplice, splice. docs/results/tcp.md has the figures.
const (
	spliceMin  = 1 << 20   // a transfer from here on
	slotBytes  = 256 << 10 // what is copied, and lent, at a time
	slots      = 16
	hugePage   = 2 << 20
	probeBytes = 4 << 10 // what is lent to a near processor: the end of a transfer, as a probe
)

// slot is a part of the lender's memory. It is free without a link, and when the peer has
// taken a frame behind seq: the frame that it holds some of has been read then.
type slot struct {
	link  *link
	seq   uint64
	bytes int
}

// lender is the memory that a transport lends to the kernel, and the pipe on whose way it
// gets there. The zero value has neither yet. Its owner is the Transport.
type splicer struct {
	off       bool   // this kernel does not do it
	mem       []byte // of the slots; nil: not mapped
	mapping   []byte // the mapping around it
	slots     [slots]slot
	next      int
	pipe      [2]int
	piped     bool // pipe is open
	owner     *link
	pipeBytes int // bytes in the pipe, which the owner sends next
	iov       unix.Iovec
}

// loan is a link's part in it.
type spliceState struct {
	loopback   bool // the peer is on this host
	slotsInUse int  // slots that are not free
	meter      cachedist.Meter
}

// plain is how many bytes of a piece are sent from where they lie, before the rest is lent.
func (t *Transport) copiedBytes(l *link, q *segment) int {
	n := len(q.b)
	least := spliceMin
	if t.opt.spliceFrom > 0 {
		least = t.opt.spliceFrom
	}
	if q.bulk == nil || n < probeBytes || !l.loopback || q.bulk.total < least || t.splicer.off {
		return n
	}
	all := t.opt.spliceFrom > 0 || l.meter.Far()
	if d := &t.splicer; d.owner != nil || !d.findSlot(l, all) {
		return n
	}
	switch {
	case all:
		return 0
	case q.bulk.off == q.bulk.total:
		return n - probeBytes
	}
	return n
}

// room makes next a slot for l, and reports whether there is one: a free one. renew: else one of
// another link over which nothing is sent. Its peer may be silent for ever, and so never say what
// it has read: the kernel keeps the pages that it was lent, and the slot gets new ones.
func (d *splicer) findSlot(l *link, renew bool) bool {
	silent := -1
	for k := range slots {
		i := (d.next + k) % slots
		switch holder := d.slots[i].link; {
		case holder == nil:
			d.next = i
			return true
		case silent < 0 && holder != l && (holder.peer == nil || holder.peer.out.empty()):
			silent = i
		}
	}
	if silent < 0 || !renew || !d.replaceSlot(silent) {
		return false
	}
	d.next = silent
	return true
}

// renew takes a slot from its link and gives it new pages. Without them nothing more is lent.
func (d *splicer) replaceSlot(i int) bool {
	d.slots[i].link.slotsInUse--
	d.slots[i] = slot{}
	d.off = remap(d.mem[i*slotBytes:][:slotBytes]) != nil
	return !d.off
}

// lend copies the front of q into a slot and puts that into the pipe.
func (d *splicer) stage(l *link, q *segment, seq uint64) {
	if d.off = d.open() != nil; d.off {
		return
	}
	s := &d.slots[d.next]
	b := d.mem[d.next*slotBytes:][:min(slotBytes, len(q.b))]
	mem.Stream(b, q.b)
	n, e := d.vmsplice(b)
	if e != 0 || n == 0 {
		d.off = true
		return
	}
	*s = slot{link: l, seq: seq, bytes: n}
	l.slotsInUse++
	d.next = (d.next + 1) % slots
	d.owner, d.pipeBytes = l, n
}

// send gives the socket of the owner what is in the pipe.
func (d *splicer) send() (n int, e unix.Errno) {
	n, e = splice(d.pipe[0], d.owner.fd, d.pipeBytes)
	if d.pipeBytes -= n; d.pipeBytes == 0 {
		d.owner = nil
	}
	return n, e
}

// open maps the memory and opens the pipe, if that has not been done.
func (d *splicer) open() (err error) {
	if d.mem == nil {
		d.mapping, err = unix.Mmap(-1, 0, slots*slotBytes+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		d.mem = aligned(d.mapping, hugePage)[:slots*slotBytes]
		unix.Madvise(d.mem, unix.MADV_HUGEPAGE) // small pages do, too
	}
	if !d.piped {
		if err := unix.Pipe2(d.pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			return err
		}
		d.piped = true
		// A user who has many pipes gets small ones, which are not worth it.
		if _, err := unix.FcntlInt(uintptr(d.pipe[1]), unix.F_SETPIPE_SZ, slotBytes); err != nil {
			d.closePipe()
			return err
		}
	}
	return nil
}

// reclaim frees the slots that the peer of l has read, and looks how far it is by the last.
func (t *Transport) reclaim(l *link) {
	d := &t.splicer
	last := -1
	for i := range d.slots {
		s := &d.slots[i]
		if s.link != l || s.seq >= l.peer.acked {
			continue
		}
		if last < 0 || s.seq >= d.slots[last].seq {
			last = i
		}
		s.link = nil
		l.slotsInUse--
	}
	if last >= 0 {
		l.meter.Probe(d.mem[last*slotBytes:][d.slots[last].bytes/64*64-64:])
	}
}

// forget is called before l is closed. What it was lent may be unread and must stay as it
// is: the memory is left to the kernel.
func (d *splicer) forget(l *link) {
	if d.owner == l {
		d.closePipe()
	}
	if l.slotsInUse > 0 {
		d.unmap()
	}
}

func (d *splicer) closePipe() {
	unix.Close(d.pipe[0])
	unix.Close(d.pipe[1])
	d.piped, d.owner, d.pipeBytes = false, nil, 0
}

func (d *splicer) unmap() {
	for i := range d.slots {
		if l := d.slots[i].link; l != nil {
			l.slotsInUse--
		}
		d.slots[i] = slot{}
	}
	unix.Munmap(d.mapping)
	d.mem, d.mapping, d.next = nil, nil, 0
}

// close gives everything back.
func (d *splicer) close() {
	if d.piped {
		d.closePipe()
	}
	if d.mem != nil {
		d.unmap()
	}
}
