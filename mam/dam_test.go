// SPDX-License-Identifier: Apache-2.0

package mam_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/test/testjob"
	"gompi/internal/test/testlab"
	"gompi/mam"
	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
	"gompi/transport"
)

// dam holds back the data that goes between processes until it is opened: large messages, or
// reads of memory. What else they send passes.
type dam struct {
	reads   bool
	gate    chan struct{}
	drops   chan struct{} // each lets one read pass; nil: none
	once    sync.Once
	held    atomic.Int64 // how much has come to it
	through atomic.Int64 // how many messages it still lets pass
	most    atomic.Int64 // of them have waited before one process
}

// newDam is the dam for a method. Of messages that come in pieces it lets the first ones
// pass: it holds an exchange in its midst. Auto reads this data.
func newDam(config mam.Config) *dam {
	d := &dam{reads: config.Method >= mam.RMALock || config.Method == mam.Auto, gate: make(chan struct{})}
	if inPieces(config) {
		d.through.Store(3)
	}
	return d
}

// inPieces reports whether who receives takes one message after the other.
func inPieces(config mam.Config) bool {
	return (config.Method == mam.COL || config.Method == mam.P2P) && config.Strategy >= mam.Thread
}

func (d *dam) open() { d.once.Do(func() { close(d.gate) }) }

func (d *dam) isOpen() bool {
	select {
	case <-d.gate:
		return true
	default:
		return false
	}
}

// option puts the dam before each process. Collectives read memory with the engine's lock
// held, and so are to send messages.
func (d *dam) option() mpitest.Option {
	return testjob.Wrap(func(t transport.Transport, _ wire.ProcID, wake func()) (transport.Transport, error) {
		if !d.reads {
			return &dammed{Transport: t, d: d, wake: wake}, nil
		}
		s, ok := t.(transport.Sharer)
		c, can := t.(transport.SingleCopy)
		if !ok || !can {
			return nil, fmt.Errorf("%s copies no memory", t.Caps().Name)
		}
		return struct {
			transport.Transport
			transport.Sharer
			dammedCopy
		}{t, s, dammedCopy{c, d}}, nil
	})
}

// dammed is a transport whose large messages wait for the dam.
type dammed struct {
	transport.Transport
	d       *dam
	wake    func()
	waiting []transport.Event // their ends; Payload is the buffer, and desc what was offered
	desc    [][]byte
	answers []transport.Event
}

// Accept implements transport.Bulk.
func (x *dammed) Accept(s transport.Slot, desc, buf []byte, tok transport.Token) error {
	if x.d.isOpen() || x.d.through.Add(-1) >= 0 {
		return x.Transport.Accept(s, desc, buf, tok)
	}
	x.d.held.Add(1)
	x.waiting = append(x.waiting, transport.Event{Kind: transport.EvBulk, Slot: s, Token: tok, Payload: buf})
	x.desc = append(x.desc, slices.Clone(desc))
	for n, most := int64(len(x.waiting)), x.d.most.Load(); n > most && !x.d.most.CompareAndSwap(most, n); {
		most = x.d.most.Load()
	}
	if len(x.waiting) == 1 {
		go func() {
			<-x.d.gate
			x.wake()
		}()
	}
	return nil
}

// Poll implements transport.Transport: one event at a time while something waits, as what
// waits is answered before the end of its peer.
func (x *dammed) Poll(ev []transport.Event) int {
	if x.d.isOpen() {
		for i, e := range x.waiting {
			if e.Err = x.Transport.Accept(e.Slot, x.desc[i], e.Payload, e.Token); e.Err != nil {
				x.answer(e)
			}
		}
		x.waiting, x.desc = nil, nil
	}
	if len(x.answers) == 0 && len(x.waiting) > 0 && x.Transport.Poll(ev[:1]) > 0 {
		if ev[0].Kind != transport.EvDown {
			return 1
		}
		for i := len(x.waiting) - 1; i >= 0; i-- {
			if e := x.waiting[i]; e.Slot == ev[0].Slot {
				x.waiting, x.desc = slices.Delete(x.waiting, i, i+1), slices.Delete(x.desc, i, i+1)
				e.Err = transport.ErrPeerGone
				x.answer(e)
			}
		}
		x.answers = append(x.answers, ev[0])
	}
	if len(x.answers) > 0 {
		ev[0] = x.answers[0]
		x.answers = x.answers[1:]
		return 1
	}
	if len(x.waiting) > 0 {
		return 0
	}
	return x.Transport.Poll(ev)
}

func (x *dammed) answer(e transport.Event) {
	e.Payload = nil
	x.answers = append(x.answers, e)
}

// Arm implements transport.Transport.
func (x *dammed) Arm() bool {
	if len(x.answers) > 0 || len(x.waiting) > 0 && x.d.isOpen() {
		return false
	}
	return x.Transport.Arm()
}

// dammedCopy is memory of others, of which reads wait for the dam.
type dammedCopy struct {
	transport.SingleCopy
	d *dam
}

// Reach implements transport.SingleCopy.
func (c dammedCopy) Reach(at wire.Contact, key, value uint64) (transport.Memory, error) {
	m, err := c.SingleCopy.Reach(at, key, value)
	return dammedMemory{m, c.d}, err
}

type dammedMemory struct {
	transport.Memory
	d *dam
}

// Read implements transport.Memory.
func (m dammedMemory) Read(dst []byte, key uint64, off int64) error {
	if len(dst) > 1<<12 {
		m.d.held.Add(1)
		select {
		case <-m.d.gate:
		case <-m.d.drops:
		}
	}
	return m.Memory.Read(dst, key, off)
}

// Sources go on iterating, among themselves and with any receive, while constant data is on
// its way, by every method and strategy: it does not arrive before they have made so many
// iterations with it.
func TestSourcesIterate(t *testing.T) {
	const iterations = 50
	for _, config := range variants {
		if config.Strategy <= mam.Blocking { // Auto may be that, too
			continue
		}
		for i, transport := range []string{"inproc", "shm"} {
			for k, change := range [][2]int{{2, 3}, {3, 2}} {
				if i == k && !testlab.Long() {
					continue
				}
				t.Run(fmt.Sprint(config.Method, "/", config.Strategy, "/", transport, "/", change[0], change[1]), func(t *testing.T) {
					d := newDam(config)
					t.Cleanup(d.open)
					mpitest.Run(t, change[0], func(t *mpitest.T, world *mpi.Comm) {
						if err := beside(t, world, d, config, change[1], iterations); err != nil && !errors.Is(err, mpi.ErrLeaving) {
							t.Fatal(err)
						}
					}, mpitest.Transport(transport), d.option())
				})
			}
		}
	}
}

// heavy is data whose parts are large messages, of several arrays.
type heavy struct{ x, y []int64 }

var heavyLayouts = [2]mam.Layout{mam.Block(200_000), mam.BlockCyclic(200_000, 5_000)}

func (h *heavy) register(m *mam.Module) error {
	if m.Role() == mam.Source {
		fill(m, &h.x, heavyLayouts[0], func(i int) int64 { return int64(i) << 20 })
		fill(m, &h.y, heavyLayouts[1], func(i int) int64 { return -int64(i) })
	}
	return errors.Join(mam.Distributed(m, "x", &h.x, heavyLayouts[0], mam.Constant), mam.Distributed(m, "y", &h.y, heavyLayouts[1], mam.Constant))
}

func (h *heavy) check(m *mam.Module) error {
	return errors.Join(is(m, "x", h.x, func(i int) int64 { return int64(i) << 20 }), is(m, "y", h.y, func(i int) int64 { return -int64(i) }))
}

// beside is a program that counts its iterations while the dam holds data back, and then
// opens it.
func beside(t *mpitest.T, world *mpi.Comm, d *dam, config mam.Config, to, iterations int) error {
	var h heavy
	m, role, err := mam.Init(t.Context(), world, config, nil)
	if err != nil {
		return err
	}
	defer m.Finalize()
	if err := h.register(m); err != nil {
		return err
	}
	if role == mam.Target {
		return errors.Join(h.check(m), m.Comm().Barrier(), m.Finalize())
	}
	if err := m.SetTarget(to); err != nil {
		return err
	}
	for made := 0; ; {
		// A receive of anything finds what another source has sent, and nothing of the
		// module's.
		r := mpi.Irecv(world, make([]int, 1), mpi.AnySource, mpi.AnyTag)
		n := world.Size()
		if err := mpi.SendOne(world, m.Iteration(), (world.Rank()+1)%n, 5); err != nil {
			return err
		}
		if st, err := r.Wait(); err != nil || st.Tag != 5 || st.Source != (world.Rank()+n-1)%n {
			return fmt.Errorf("received %v of rank %d: %w", st.Tag, st.Source, err)
		}
		if err := world.Barrier(); err != nil {
			return err
		}
		held := d.held.Load() > 0 && !d.isOpen()
		state, err := m.Checkpoint(mam.Check)
		if err != nil {
			return err
		}
		if state == mam.Completed {
			break
		}
		if held {
			if made++; made == iterations {
				d.open()
			}
		}
	}
	if !d.isOpen() {
		return errors.New("the change was committed while data was held back")
	}
	if n := d.most.Load(); inPieces(config) && n != 1 {
		return fmt.Errorf("%d pieces were under way to one process at once, not one after the other", n)
	}
	return errors.Join(h.check(m), m.Comm().Barrier(), m.Finalize())
}

// A process that dies while constant data is on its way, by any method and strategy, ends the
// change for all: nobody waits for data that never comes. Sources keep what they have. The
// next change starts another newcomer, or names what is lost with a source. The short form
// does a third of it.
func TestDeathBehindTheDam(t *testing.T) {
	for i, config := range variants {
		if config.Strategy <= mam.Blocking {
			continue
		}
		for k, who := range []struct {
			name     string
			to, rank int // -1: the newcomer
		}{{"source", 4, 1}, {"leaver", 2, 2}, {"newcomer", 4, -1}} {
			if !testlab.Long() && (i+i/4)%3 != k {
				continue
			}
			t.Run(fmt.Sprint(config.Method, "/", config.Strategy, "/", who.name), func(t *testing.T) {
				f := &flood{dam: newDam(config), to: who.to, victim: who.rank, die: make(chan struct{})}
				t.Cleanup(f.open)
				mpitest.Run(t, 3, func(t *mpitest.T, world *mpi.Comm) {
					if err := f.run(t, world, config); err != nil && !errors.Is(err, mpi.ErrRolledBack) {
						t.Fatal(err)
					}
				}, mpitest.Transport("shm"), f.option())
			})
		}
	}
}

// flood is a change to so many ranks in which one dies.
type flood struct {
	*dam
	to, victim int
	die        chan struct{} // closed when the newcomer is to die
}

func (f *flood) run(t *mpitest.T, world *mpi.Comm, config mam.Config) error {
	var h heavy
	joined, err := sessions.Joined(t.Context())
	if err != nil {
		return err
	}
	if joined != nil && f.victim < 0 && !f.isOpen() {
		go func() {
			<-f.die
			t.Kill(-1)
		}()
	}
	m, role, err := mam.Init(t.Context(), world, config, nil)
	if err != nil {
		return err
	}
	defer m.Finalize()
	if err := h.register(m); err != nil {
		return err
	}
	if role == mam.Target {
		return errors.Join(h.check(m), m.Comm().Barrier(), m.Finalize())
	}
	first, was := world.Rank() == 0, mam.NotStarted
	for made := 0; ; {
		time.Sleep(iterationTime) //archtest:sleep an iteration of the program
		if first && (made == 0 || f.isOpen()) {
			n := f.to
			if made > 0 && f.victim >= 0 {
				n = 2
			}
			if err := m.SetTarget(n); err != nil {
				return err
			}
		}
		state, err := m.Checkpoint(mam.Check)
		switch lost := new(mam.LostError); {
		case errors.As(err, &lost) && f.victim >= 0 && slices.Equal(lost.Ranks, []int{f.victim}):
			return errors.Join(h.check(m), m.Finalize())
		case err != nil:
			return err
		case state == mam.Completed && f.victim < 0:
			return errors.Join(h.check(m), m.Comm().Barrier(), m.Finalize())
		case state == mam.Completed:
			return errors.New("committed without the data of one")
		}
		if err := h.check(m); err != nil {
			return err
		}
		if first && f.held.Load() > 0 {
			if made++; made == deathAfter && f.reads {
				f.open() // an engine waits for copies from the memory of a process that has ended
			}
			switch {
			case made == deathAfter && f.victim < 0:
				close(f.die)
			case made == deathAfter:
				t.Kill(f.victim)
			case made > deathAfter && was == mam.Pending && state == mam.NotStarted:
				f.open()
			}
		}
		was = state
	}
}

// deathAfter are the iterations that the first rank makes while data is held back.
const deathAfter = 10
