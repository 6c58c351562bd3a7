// SPDX-License-Identifier: Apache-2.0

package head

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/internal/base/idset"
	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// Neighbor is the head of another job, over one connection. There may be two of one
// job, where each has called the other: what was learnt by one goes on by that one. The
// end of it is the end of all processes that were met by it.
type Neighbor struct {
	Job  wire.JobID
	Port string // where this end calls, until both have greeted; "": the other one has called

	up     bool
	secret [32]byte            // of what the processes of both jobs say
	told   idset.Set           // processes of this job that it knows, and whose ends it has not heard
	ours   map[uint64]*meeting // that connect to its ports, by their numbers
	theirs map[uint64]*meeting // likewise, to ours
	last   uint64
}

// stranger is a process of another job that one of this job has met: a *proc that is
// never connected, is on no host, and of which the neighbor tells.
type stranger struct {
	*proc
	by       *Neighbor
	wanted   bool               // how it is reached was asked
	watchers map[*proc]struct{} // of this job, who want to hear of its end
}

// maxNeighbors bounds the neighbors, and maxGuests the groups of one that wait at ports.
const (
	maxNeighbors = 1 << 12
	maxGuests    = 1 << 12
)

// keyed is a hash of some words that only this job can make.
func (h *Head) keyed(label string, n uint64) []byte {
	m := hmac.New(sha256.New, h.cfg.Secret[:])
	m.Write([]byte(label))
	m.Write(binary.LittleEndian.AppendUint64(nil, n))
	return m.Sum(nil)
}

// portName names a port: the job, its number there, and what nobody can guess.
func (h *Head) portName(n uint64) string {
	return fmt.Sprintf("%s%016x:%d:%x", portScheme, uint64(h.cfg.Job), n, h.keyed("gompi port", n)[:16])
}

const portScheme = "gompi-port:"

// jobOfPort is the job whose port has this name; this one's, if it is none.
func (h *Head) jobOfPort(name string) wire.JobID {
	var job uint64
	rest, ok := strings.CutPrefix(name, portScheme)
	if n, _ := fmt.Sscanf(rest, "%016x:", &job); !ok || n != 1 || job == 0 {
		return h.cfg.Job
	}
	return wire.JobID(job)
}

// findPort is the port of this name, found in a time that says nothing of other names.
func (h *Head) findPort(name string) *port {
	for at, x := range h.ports {
		if subtle.ConstantTimeCompare([]byte(at), []byte(name)) == 1 {
			return x
		}
	}
	return nil
}

func (h *Head) newNeighbor(job wire.JobID, port string) *Neighbor {
	nb := &Neighbor{Job: job, Port: port, ours: map[uint64]*meeting{}, theirs: map[uint64]*meeting{}}
	h.neighbors[nb] = struct{}{}
	return nb
}

// neighborOf is one of a job that there is, or, if there is none, that is called; nil:
// neither.
func (h *Head) neighborOf(job wire.JobID) (called *Neighbor) {
	for nb := range h.neighbors {
		if nb.Job == job && nb.up {
			return nb
		} else if nb.Job == job {
			called = nb
		}
	}
	return called
}

// Greeting is what this end says first.
func (h *Head) Greeting(nb *Neighbor) *protocol.Greet {
	m := &protocol.Greet{Version: version.Gompi(), Job: h.cfg.Job, Port: nb.Port}
	copy(m.Key[:], h.keyed("gompi neighbor", uint64(nb.Job)))
	return m
}

// Greeted: another head has called, and shows a port. The caller answers with Greeting.
func (h *Head) Greeted(m *protocol.Greet) (*Neighbor, error) {
	switch {
	case h.ending != "":
		return nil, protocol.Ending(h.ending)
	case m.Job == 0 || m.Job == h.cfg.Job:
		return nil, protocol.Refused("a job that calls itself %016x", uint64(m.Job))
	case h.findPort(m.Port) == nil:
		return nil, noPort(m.Port)
	case len(h.neighbors) >= maxNeighbors:
		return nil, protocol.Refused("job %016x has %d neighbors", uint64(h.cfg.Job), len(h.neighbors))
	}
	nb := h.newNeighbor(m.Job, "")
	h.greet(nb, m)
	return nb, nil
}

// Answered: the head that was called has greeted in its turn.
func (h *Head) Answered(nb *Neighbor, m *protocol.Greet) error {
	if m.Job != nb.Job {
		return fmt.Errorf("job %016x answers for job %016x", uint64(m.Job), uint64(nb.Job))
	}
	h.greet(nb, m)
	for id, t := range nb.ours {
		h.callOut(nb, id, t)
	}
	return nil
}

func (h *Head) greet(nb *Neighbor, m *protocol.Greet) {
	low, high := h.Greeting(nb).Key, m.Key
	if m.Job < h.cfg.Job {
		low, high = high, low
	}
	nb.up, nb.Port, nb.secret = true, "", sha256.Sum256(append(low[:], high[:]...))
}

// tellNeighbor tells a neighbor.
func (h *Head) tellNeighbor(nb *Neighbor, m protocol.JobMessage) {
	if nb.up {
		h.out = append(h.out, Effect{Neighbor: nb, Say: &m})
	}
}

// connectOut has a group of this job connect to a port of another.
func (h *Head) connectOut(t *meeting, job wire.JobID, name string) {
	nb := h.neighborOf(job)
	if nb == nil && len(h.neighbors) >= maxNeighbors {
		h.turnAway(t, protocol.Refused("job %016x has %d neighbors", uint64(h.cfg.Job), len(h.neighbors)))
		return
	}
	if nb == nil {
		nb = h.newNeighbor(job, name)
		h.out = append(h.out, Effect{Neighbor: nb})
	}
	nb.last++
	t.out, t.number, t.name = nb, nb.last, name
	nb.ours[t.number], t.w.meeting = t, t
	h.callOut(nb, t.number, t)
}

func (h *Head) callOut(nb *Neighbor, id uint64, t *meeting) {
	h.tellNeighbor(nb, protocol.JobMessage{Kind: protocol.JobConnect, ID: id, Members: t.members, Port: t.name})
}

// RecallWait is how long a group that has given up waits for another job to say whether it
// was met before.
const RecallWait = 10 * time.Second

// recall: who connects to a port of another job has given up. Whether the group was met
// before that the other job says: it is answered then.
func (h *Head) recall(t *meeting) {
	if t.until == 0 {
		t.until = h.now() + RecallWait
		h.tellNeighbor(t.out, protocol.JobMessage{Kind: protocol.JobHangUp, ID: t.number})
	}
}

// nextRecall is when the first job that was asked so is waited for no longer.
func (h *Head) nextRecall() (at time.Duration, ok bool) {
	for nb := range h.neighbors {
		for _, t := range nb.ours {
			if t.until != 0 && !t.over && (!ok || t.until < at) {
				at, ok = t.until, true
			}
		}
	}
	return at, ok
}

// tickRecall refuses those that have waited too long.
func (h *Head) tickRecall() {
	for nb := range h.neighbors {
		for _, t := range nb.ours {
			if t.until != 0 && !t.over && t.until <= h.now() {
				h.unparkWith(t.w, errGivenUp)
			}
		}
	}
}

// hangUp: a group of this job connects to a port of another no more, and nobody waits for
// what that says.
func (h *Head) hangUp(nb *Neighbor, t *meeting) {
	if nb.ours[t.number] != t || t.over {
		return
	}
	if t.over = true; !nb.up { // it has not called
		delete(nb.ours, t.number)
	}
	if t.until == 0 { // else it was told
		h.tellNeighbor(nb, protocol.JobMessage{Kind: protocol.JobHangUp, ID: t.number})
	}
}

// refuseOut: it meets nobody there.
func (h *Head) refuseOut(t *meeting, err error) {
	if !t.over {
		h.turnAway(t, err)
	}
}

// there is why the head of another job refuses, for processes of this one.
func there(err error) error {
	if errors.Is(err, protocol.ErrEnding) {
		return protocol.NotFound("the other %v", err)
	}
	return err
}

// Heard takes what a neighbor says. An error means that it broke the protocol.
func (h *Head) Heard(nb *Neighbor, m *protocol.JobMessage) error {
	if _, ok := h.neighbors[nb]; !ok {
		return nil
	}
	switch m.Kind {
	case protocol.JobConnect:
		return h.called(nb, m)
	case protocol.JobHangUp:
		if t := nb.theirs[m.ID]; t != nil { // else it is answered already
			h.turnAway(t, protocol.Refused("cancelled"))
		}
	case protocol.JobAccepted:
		return h.metOut(nb, m)
	case protocol.JobRefused:
		if t := nb.ours[m.ID]; t != nil {
			delete(nb.ours, m.ID)
			h.refuseOut(t, there(protocol.FromText(m.Text)))
		}
	case protocol.JobWantAddrs:
		// One that has not joined yet may be met by the others of its world.
		if p := h.proc(m.Proc); p != nil && p.via == nil && p.state <= protocol.Joined && nb.told.Has(m.Proc.Serial) {
			h.tellAddrs(nb, p)
		}
	case protocol.JobAddrs:
		if s := h.strangers[m.Proc]; s != nil && s.by == nb {
			s.announced, s.addrs = true, m.Addrs
			h.answerContacts(s.awaited)
		}
	case protocol.JobDied, protocol.JobFinalized:
		if s := h.strangers[m.Proc]; s != nil && s.by == nb {
			s.died, s.left = m.Kind == protocol.JobDied, m.Kind == protocol.JobFinalized
			h.endStranger(s, m.Text)
		}
	case protocol.JobPing, protocol.JobPong, protocol.JobDisconnected:
		h.passOn(nb, m)
	}
	return nil
}

// foreign reports whether all of a group, which is no larger than one that is started
// together, are of a neighbor's job.
func (nb *Neighbor) foreign(group wire.Members) bool {
	return group.Len() > 0 && group.Len() <= protocol.MaxSpawn &&
		!slices.ContainsFunc(group.Ranges(), func(r wire.Range) bool { return r.First.Job != nb.Job })
}

func tooMany(n int) error {
	return protocol.Refused("a group of %d processes meets no other job's, at most %d do", n, protocol.MaxSpawn)
}

// called: a group of a neighbor connects to a port here.
func (h *Head) called(nb *Neighbor, m *protocol.JobMessage) error {
	if !nb.foreign(m.Members) || nb.theirs[m.ID] != nil {
		return fmt.Errorf("group %d of %d processes connects twice, or is of another job", m.ID, m.Members.Len())
	}
	t := &meeting{in: nb, number: m.ID, members: m.Members}
	nb.theirs[m.ID] = t
	switch x := h.findPort(m.Port); {
	case h.ending != "":
		h.turnAway(t, protocol.Ending(h.ending))
	case x == nil:
		h.turnAway(t, noPort(m.Port))
	case len(nb.theirs) > maxGuests:
		h.turnAway(t, protocol.Refused("%d groups of one job wait at ports", len(nb.theirs)))
	default:
		t.port = x
		h.arrive(t)
	}
	return nil
}

// metOut: a group of this job was accepted at a port of another.
func (h *Head) metOut(nb *Neighbor, m *protocol.JobMessage) error {
	if !nb.foreign(m.Members) || m.Number == 0 || m.Number > wire.MaxSet {
		return fmt.Errorf("a group of %d processes with the set %d", m.Members.Len(), m.Number)
	}
	t := nb.ours[m.ID]
	if t == nil {
		return fmt.Errorf("group %d is accepted, which does not connect", m.ID)
	}
	delete(nb.ours, m.ID)
	defer h.showGroup(nb, t.members) // the others hear of the ends in any case
	if t.over {
		h.cutAll(nb, t.members, m.Members)
		return nil
	}
	mine, err := h.define(t.members)
	if err != nil {
		h.turnAway(t, err)
		return nil
	}
	h.hold(mine.Number)
	defer h.unhold(mine.Number)
	theirs := h.meetStrangers(nb, m.Members)
	defer h.unhold(theirs.Number)
	h.answerMeeting(t, &protocol.ConnectBody{Mine: mine, Theirs: theirs, Job: nb.Job, IDs: m.Number})
	return nil
}

// cutAll tells the processes of a group that has met one of this job that these do not know
// of it: they would be waited for.
func (h *Head) cutAll(nb *Neighbor, mine, theirs wire.Members) {
	for _, id := range mine.All() {
		if !h.takesPart(id) {
			continue
		}
		for _, other := range theirs.All() {
			h.tellNeighbor(nb, protocol.JobMessage{Kind: protocol.JobDisconnected, By: id, Proc: other, Text: "it had given up connecting when it was accepted"})
		}
	}
}

// meetIn: a group of this job accepts one of a neighbor.
func (h *Head) meetIn(a, c *meeting, mine wire.Set) {
	nb := c.in
	theirs := h.meetStrangers(nb, c.members)
	defer h.unhold(theirs.Number)
	h.answerMeeting(a, &protocol.ConnectBody{Mine: mine, Theirs: theirs, Job: h.cfg.Job, IDs: mine.Number})
	h.stopMeeting(c)
	h.tellNeighbor(nb, protocol.JobMessage{Kind: protocol.JobAccepted, ID: c.number, Members: a.members, Number: mine.Number})
	h.showGroup(nb, a.members)
}

// meetStrangers makes a set of processes of another job, which nobody can name, and holds
// it: they are known as long as those who were given it have not heard of their ends.
func (h *Head) meetStrangers(nb *Neighbor, group wire.Members) wire.Set {
	for _, id := range group.All() {
		if h.strangers[id] == nil {
			h.strangers[id] = &stranger{by: nb, proc: &proc{id: id, host: wire.NoHost, state: protocol.Joined, via: nb}}
		}
	}
	s := h.newSet(group)
	h.sets[s.Number].strange = true
	h.hold(s.Number)
	return s
}

// showGroup: a neighbor knows a group of this job, and hears of the ends of its members.
func (h *Head) showGroup(nb *Neighbor, group wire.Members) {
	for _, id := range group.All() {
		if p := h.proc(id); p != nil && p.state <= protocol.Joined {
			nb.told.Add(id.Serial, id.Serial)
		} else if p != nil {
			h.tellNeighborEnd(nb, p.end())
		} else {
			h.tellNeighborEnd(nb, &protocol.Event{Kind: protocol.EvDied, Proc: id, Text: howPast})
		}
	}
}

// tellNeighbors tells those who know p of its end.
func (h *Head) tellNeighbors(p *proc) {
	for nb := range h.neighbors {
		if nb.told.Has(p.id.Serial) {
			nb.told.Remove(p.id.Serial)
			h.tellNeighborEnd(nb, p.end())
		}
	}
}

func (h *Head) tellNeighborEnd(nb *Neighbor, ev *protocol.Event) {
	do := protocol.JobDied
	if ev.Kind == protocol.EvGone {
		do = protocol.JobFinalized
	}
	h.tellNeighbor(nb, protocol.JobMessage{Kind: do, Proc: ev.Proc, Text: ev.Text})
}

// NeighborLost: the connection with another head has ended, or never stood: why.
func (h *Head) NeighborLost(nb *Neighbor, why error) {
	if _, ok := h.neighbors[nb]; !ok {
		return
	}
	delete(h.neighbors, nb)
	for _, p := range h.procs {
		delete(p.wantedBy, nb)
	}
	how := protocol.Clip(fmt.Sprintf("gompirun of job %016x is gone: %v", uint64(nb.Job), why), protocol.MaxText)
	for _, s := range h.strangersOf(nb) {
		s.died = true
		h.endStranger(s, how)
	}
	for id, t := range nb.theirs {
		delete(nb.theirs, id)
		h.stopMeeting(t)
	}
	ours := nb.ours
	nb.ours = map[uint64]*meeting{}
	for _, t := range ours {
		if !nb.up && !t.over && t.name != nb.Port { // the port that was shown was another one
			t.out = nil
			h.connectOut(t, nb.Job, t.name)
			continue
		}
		if err := there(why); errors.Is(err, protocol.ErrNotFound) || errors.Is(err, protocol.ErrRefused) {
			h.refuseOut(t, err) // the other head has said why
			continue
		}
		h.refuseOut(t, protocol.NotFound("port %q: %v", protocol.Clip(t.name, protocol.MaxName), why))
	}
	if h.neighborOf(nb.Job) != nil {
		return
	}
	is := func(job wire.JobID) bool { return job == nb.Job }
	for _, p := range h.joined {
		if slices.ContainsFunc(p.abroad, is) {
			p.abroad, p.reachable = slices.DeleteFunc(p.abroad, is), slices.DeleteFunc(p.reachable, is)
			h.sendEvent(p, protocol.Event{Kind: protocol.EvJobOver, ID: uint64(nb.Job)})
		}
	}
}
