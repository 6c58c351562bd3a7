// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// DevicePlan says which faults devices have. Probabilities are 0 to 1.
type DevicePlan struct {
	Seed uint64
	// Latest is the longest time of a step of an operation; 0 means 100 microseconds.
	Latest time.Duration
	// Full is the probability that an operation is refused while others are under way. Fail is
	// the probability that an operation fails after a part of it was done.
	Full, Fail float64
}

// Devices simulates the devices of all processes of a job that are goroutines of one program. The
// devices carry out posted operations later, each one separately and in any order, and report them
// at random times.
type Devices struct {
	plan DevicePlan

	mu       sync.Mutex // guards the fields below; also held while memory is accessed
	rnd      *rand.Rand
	devices  map[wire.ProcID]*device
	timers   map[*posting]bool // operations with a timer
	counters DeviceCounters
}

// DeviceCounters counts what devices have done.
type DeviceCounters struct{ Puts, Gets, Failed, Withdrawn, Full, Rings atomic.Int64 }

// NewDevices returns devices for the processes of one job.
func NewDevices(p DevicePlan) *Devices {
	if p.Latest == 0 {
		p.Latest = 100 * time.Microsecond
	}
	return &Devices{plan: p, rnd: rand.New(rand.NewPCG(p.Seed, 0x646576)), devices: map[wire.ProcID]*device{}, timers: map[*posting]bool{}}
}

// Counters returns the counters of all devices.
func (x *Devices) Counters() *DeviceCounters { return &x.counters }

// Wrap adds a device to the transport of a process. The transport carries the messages. Its other
// capabilities are hidden, so that the device is the only way to the memory of other processes.
func (x *Devices) Wrap(below transport.Transport, self wire.ProcID, wake func()) transport.Transport {
	d := &device{Transport: below, x: x, self: self, wake: wake, exposed: map[uint64][]byte{}}
	x.mu.Lock()
	x.devices[self] = d
	x.mu.Unlock()
	return d
}

// Hurry makes the devices do all delayed steps at once, and delay no step from now on.
func (x *Devices) Hurry() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.plan.Latest = 0
	for o := range x.timers {
		if o.timer.Stop() {
			o.schedule()
		}
	}
}

// device is the device of one process. Devices.mu guards it.
type device struct {
	transport.Transport
	x    *Devices
	self wire.ProcID
	wake func()

	closed  bool
	armed   bool
	keys    uint64
	exposed map[uint64][]byte
	events  []deviceEvent
}

// deviceEvent is an event for the poster of an operation.
type deviceEvent struct {
	transport.Event
	poster *poster
}

// keyBytes is the length of a key. Its contents are opaque, and other code cannot guess the length.
const keyBytes = 11

var errNoKey = errors.New("faulty: not a key")

// Expose implements transport.RemoteMemory.
func (d *device) Expose(buf, key []byte) (int, error) {
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	d.keys++
	d.exposed[d.keys] = buf
	key[0], key[9], key[10] = 0xDE, 0xAD, byte(d.self.Serial)
	binary.BigEndian.PutUint64(key[1:], d.keys)
	return keyBytes, nil
}

// keyOf returns the number in a key.
func keyOf(key []byte) (uint64, error) {
	if len(key) != keyBytes || key[0] != 0xDE || key[9] != 0xAD {
		return 0, errNoKey
	}
	return binary.BigEndian.Uint64(key[1:]), nil
}

// Hide implements transport.RemoteMemory.
func (d *device) Hide(key []byte) {
	k, err := keyOf(key)
	if err != nil {
		panic(err)
	}
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	delete(d.exposed, k)
}

// Poster implements transport.RemoteMemory.
func (d *device) Poster(c wire.Contact) (transport.Poster, error) {
	for _, fd := range []int{c.Segment, c.Bell} {
		if fd >= 0 {
			os.NewFile(uintptr(fd), "contact").Close()
		}
	}
	return &poster{d: d, to: c.Proc, open: map[transport.Token]*posting{}}, nil
}

// Poll implements transport.Transport.
func (d *device) Poll(ev []transport.Event) int {
	n := d.Transport.Poll(ev)
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	k := 0
	for k < len(d.events) && n < len(ev) {
		if e := &d.events[k]; !e.poster.closed {
			ev[n] = e.Event
			n++
		}
		k++
	}
	d.events = append(d.events[:0], d.events[k:]...)
	return n
}

// Arm implements transport.Transport.
func (d *device) Arm() bool {
	if !d.Transport.Arm() {
		return false
	}
	d.x.mu.Lock()
	defer d.x.mu.Unlock()
	d.armed = len(d.events) == 0
	return d.armed
}

// Disarm implements transport.Transport.
func (d *device) Disarm() {
	d.x.mu.Lock()
	d.armed = false
	d.x.mu.Unlock()
	d.Transport.Disarm()
}

// Close implements transport.Transport.
func (d *device) Close() error {
	d.x.mu.Lock()
	d.closed = true
	d.exposed, d.events = nil, nil
	delete(d.x.devices, d.self)
	d.x.mu.Unlock()
	return d.Transport.Close()
}

// poster implements transport.Poster.
type poster struct {
	d      *device
	to     wire.ProcID
	closed bool
	open   map[transport.Token]*posting
	held   []*posting // operations that wait for Ring
}

// posting is an operation. mem is nil if the memory must not be touched any more.
type posting struct {
	p    *poster
	tok  transport.Token
	get  bool
	mem  []byte
	data []byte // of a put: the copy of mem, once it has been made
	n    int
	key  uint64
	off  int64

	timer *time.Timer // of the next step
}

// maxHeldPosts bounds the operations that a poster keeps back.
const maxHeldPosts = 3

// Put implements transport.Poster.
func (p *poster) Put(src, key []byte, off int64, tok transport.Token) transport.Status {
	return p.post(&posting{p: p, tok: tok, mem: src, n: len(src), off: off}, key)
}

// Get implements transport.Poster.
func (p *poster) Get(dst, key []byte, off int64, tok transport.Token) transport.Status {
	return p.post(&posting{p: p, tok: tok, mem: dst, n: len(dst), off: off, get: true}, key)
}

// post accepts or refuses an operation.
func (p *poster) post(o *posting, key []byte) (st transport.Status) {
	x := p.d.x
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case o.n == 0 || o.n > transport.MaxPost || p.open[o.tok] != nil:
		panic(fmt.Sprintf("faulty: post of %d bytes as %#x", o.n, o.tok))
	case p.closed || p.d.closed:
		return transport.Broken
	case len(p.open) > 0 && x.rnd.Float64() < x.plan.Full:
		x.counters.Full.Add(1)
		return transport.Full
	}
	var err error
	if o.key, err = keyOf(key); err != nil {
		return transport.Broken
	}
	st = transport.Queued
	if o.get {
		x.counters.Gets.Add(1)
	} else if x.counters.Puts.Add(1); x.rnd.IntN(3) == 0 {
		o.data, o.mem, st = append([]byte(nil), o.mem...), nil, transport.Sent
	}
	p.open[o.tok] = o
	if p.held = append(p.held, o); len(p.held) > x.rnd.IntN(maxHeldPosts+1) {
		p.begin()
	}
	return st
}

// Ring implements transport.Poster.
func (p *poster) Ring() {
	p.d.x.mu.Lock()
	defer p.d.x.mu.Unlock()
	p.d.x.counters.Rings.Add(1)
	p.begin()
}

// begin starts the operations that were kept back.
func (p *poster) begin() {
	for _, o := range p.held {
		o.schedule()
	}
	p.held = p.held[:0]
}

// schedule schedules the next step of an operation.
func (o *posting) schedule() {
	o.p.d.x.timers[o] = true
	o.timer = time.AfterFunc(o.p.d.x.rndTime(), o.step)
}

// rndTime returns a random delay.
func (x *Devices) rndTime() time.Duration {
	return time.Duration(x.rnd.Int64N(int64(x.plan.Latest) + 1))
}

// step does one step of an operation.
func (o *posting) step() {
	x := o.p.d.x
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.timers, o)
	if o.p.closed || o.p.d.closed || o.p.open[o.tok] != o {
		return
	}
	if !o.get && o.data == nil && o.mem != nil {
		o.data, o.mem = append([]byte(nil), o.mem...), nil
		if x.rnd.IntN(2) == 0 {
			o.p.emit(transport.Event{Kind: transport.EvLocal, Token: o.tok})
		}
		o.schedule()
		return
	}
	delete(o.p.open, o.tok)
	o.p.emit(transport.Event{Kind: transport.EvRemote, Token: o.tok, Err: o.move()})
}

// move copies the data.
func (o *posting) move() error {
	x := o.p.d.x
	here := o.data
	if o.get {
		here = o.mem
	}
	if here == nil {
		return transport.ErrCancelled
	}
	to := x.devices[o.p.to]
	if to == nil || to.closed {
		return transport.ErrPeerGone
	}
	there := to.exposed[o.key]
	switch {
	case there == nil:
		return transport.ErrHidden
	case o.off < 0 || o.off > int64(len(there)-o.n):
		return transport.ErrProtocol
	}
	there = there[o.off:][:o.n]
	var err error
	if x.rnd.Float64() < x.plan.Fail {
		x.counters.Failed.Add(1)
		err = errInjected
		here, there = here[:o.n/2], there[:o.n/2]
	}
	if o.get {
		copy(here, there)
	} else {
		copy(there, here)
	}
	return err
}

// emit adds an event for Poll.
func (p *poster) emit(ev transport.Event) {
	p.d.events = append(p.d.events, deviceEvent{ev, p})
	if p.d.armed {
		p.d.wake()
	}
}

// Withdraw implements transport.Poster.
func (p *poster) Withdraw(tok transport.Token) {
	p.d.x.mu.Lock()
	defer p.d.x.mu.Unlock()
	if o := p.open[tok]; o != nil && o.mem != nil {
		p.d.x.counters.Withdrawn.Add(1)
		o.mem = nil
	}
}

// Close implements transport.Poster.
func (p *poster) Close() {
	p.d.x.mu.Lock()
	defer p.d.x.mu.Unlock()
	p.closed = true
	for _, o := range p.open {
		if o.timer != nil && o.timer.Stop() {
			delete(p.d.x.timers, o)
		}
	}
	clear(p.open)
}

var _ transport.RemoteMemory = (*device)(nil)
