// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"golang.org/x/sys/unix"

	"gompi/internal/host/cachedist"
	"gompi/internal/host/mem"
)

// A send normally copies the payload into the kernel's own pages, which the receiver's processor
// has read last. If that processor is far, this copy takes three times as long as if it is near.
// So for a large transfer to a far processor of the same host, the payload is copied by
// non-temporal stores into pages of ours, and vmsplice and splice pass these to the socket.
// docs/results/tcp.md has the figures.
const (
	spliceMin  = 1 << 20   // least size of such a transfer
	slotBytes  = 256 << 10 // bytes of a slot
	slots      = 16
	hugePage   = 2 << 20
	probeBytes = 4 << 10 // end of a transfer to a near processor that is spliced to measure the distance
)

// slot is a part of the splicer's memory. It is free if it has no link. It becomes free when the
// peer has acknowledged a frame after seq: the peer has then read the whole slot.
type slot struct {
	link  *link
	seq   uint64
	bytes int
}

// splicer is the memory whose pages go to sockets, with the pipe that they go through. The zero
// value has neither yet. The Transport owns it.
type splicer struct {
	off       bool   // this kernel does not support it
	mem       []byte // of the slots; nil if it is not mapped
	mapping   []byte // the mapping around mem
	slots     [slots]slot
	next      int
	pipe      [2]int
	piped     bool // pipe is open
	owner     *link
	pipeBytes int // bytes in the pipe, which the owner sends next
	iov       unix.Iovec
}

// spliceState is the state of a link with respect to the splicer.
type spliceState struct {
	loopback   bool // the peer is on this host
	slotsInUse int  // slots of this link
	meter      cachedist.Meter
}

// copiedBytes returns how many bytes of a segment are sent by a copy before the rest is spliced.
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

// findSlot makes next a slot for l, and reports whether there is one. It takes a free slot. With
// replace it may also take a slot of another link that has nothing to send. The peer of that link
// may never say that it has read the slot. The kernel keeps the old pages, and the slot gets new
// ones.
func (d *splicer) findSlot(l *link, replace bool) bool {
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
	if silent < 0 || !replace || !d.replaceSlot(silent) {
		return false
	}
	d.next = silent
	return true
}

// replaceSlot takes a slot from its link and gives it new pages. If there are none, splicing ends.
func (d *splicer) replaceSlot(i int) bool {
	d.slots[i].link.slotsInUse--
	d.slots[i] = slot{}
	d.off = remap(d.mem[i*slotBytes:][:slotBytes]) != nil
	return !d.off
}

// stage copies the front of q into a slot and puts the slot into the pipe.
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

// send moves data from the pipe to the socket of the owner.
func (d *splicer) send() (n int, e unix.Errno) {
	n, e = splice(d.pipe[0], d.owner.fd, d.pipeBytes)
	if d.pipeBytes -= n; d.pipeBytes == 0 {
		d.owner = nil
	}
	return n, e
}

// open maps the memory and opens the pipe, unless that was done before.
func (d *splicer) open() (err error) {
	if d.mem == nil {
		d.mapping, err = unix.Mmap(-1, 0, slots*slotBytes+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		d.mem = aligned(d.mapping, hugePage)[:slots*slotBytes]
		unix.Madvise(d.mem, unix.MADV_HUGEPAGE) // small pages work, too
	}
	if !d.piped {
		if err := unix.Pipe2(d.pipe[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
			return err
		}
		d.piped = true
		// A user with many pipes gets small ones, which are not worth it.
		if _, err := unix.FcntlInt(uintptr(d.pipe[1]), unix.F_SETPIPE_SZ, slotBytes); err != nil {
			d.closePipe()
			return err
		}
	}
	return nil
}

// reclaim frees the slots that the peer of l has read, and measures the peer's distance by the
// last one.
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

// forget runs before l is closed. Slots of l may be unread and must not change, so the kernel
// keeps the memory.
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

// close releases the memory and the pipe.
func (d *splicer) close() {
	if d.piped {
		d.closePipe()
	}
	if d.mem != nil {
		d.unmap()
	}
}
