// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/test/testlab"
)

// site is a head whose processes take places, start programs there, signal, attach and
// kill them, and a twin of it: a few counts that say what must come of each step.
type site struct {
	t    *testing.T
	rng  *rand.Rand
	h    *Head
	now  time.Duration
	log  []string
	all  map[uint32]*placed // by serial
	asks map[uint32]*asking
	last uint32

	done map[string]int // answers that are no refusals, of all sites

	slots    int
	launches []*Launch
	signals  map[uint32]int // by serial: how many the launcher was to send
	bound    map[uint32]int // by serial: places that agents were told of
}

// placed is what the twin knows of a process.
type placed struct {
	id      wire.ProcID
	host    uint32
	owner   *placed // nil: nobody
	started bool
	forked  bool
	joined  bool
	over    bool // has ended
	freed   bool
	kin     bool // attached
	set     uint32
}

// asking is a request that is not answered.
type asking struct {
	by    *placed
	what  string
	m     protocol.Message
	procs []*placed
}

func newSite(t *testing.T, seed uint64, hosts int, done map[string]int) *site {
	s := &site{t: t, done: done, rng: rand.New(rand.NewPCG(seed, 9)), all: map[uint32]*placed{}, asks: map[uint32]*asking{}, signals: map[uint32]int{}, bound: map[uint32]int{}, slots: 8}
	cfg := Config{Job: 7, Spawns: true, Signals: true, FaultTolerant: true, Slots: s.slots, Now: func() time.Duration { return s.now }, HostSlots: []int{3, 3, 4}[:hosts], HostNames: []string{"red", "rose", "blue"}[:hosts]}
	s.h = New(cfg, hosts)
	places, err := s.h.Place(2)
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.h.Join(make([][]string, 2), places)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range set.Members.All() {
		x := &placed{id: id, host: set.Hosts.At(i), started: true, forked: true}
		s.all[id.Serial] = x
		s.join(x)
	}
	return s
}

func (s *site) fail(format string, a ...any) {
	s.t.Helper()
	for _, l := range s.log[max(0, len(s.log)-40):] {
		s.t.Log(l)
	}
	s.t.Fatalf(format, a...)
}

func (s *site) say(format string, a ...any) { s.log = append(s.log, fmt.Sprintf(format, a...)) }

func (s *site) flush() {
	for s.h.Flush(s.effect) {
	}
}

func (s *site) effect(e *Effect) {
	switch {
	case e.Launch != nil:
		s.launches = append(s.launches, e.Launch)
	case e.Signal != 0:
		for _, id := range e.Procs {
			s.signals[id.Serial]++
		}
	case e.Order.Kind == protocol.CmdBind:
		for i := range e.Order.Count {
			s.bound[e.Order.Serial+i]++
		}
	case e.Order.Kind == protocol.CmdSend:
		f, n, err := protocol.ParseHead(e.Order.Frame)
		if err != nil {
			s.fail("%v", err)
		}
		if f.Kind == protocol.KindReply {
			s.answered(f.ID, e.Order.Frame[protocol.FrameHead:][:n])
		}
	}
}

func (s *site) take(x *placed, r protocol.Report) {
	r.Serial = x.id.Serial
	s.h.Take(x.host, &r)
	s.flush()
}

func (s *site) join(x *placed) {
	x.joined = true
	s.take(x, protocol.Report{Kind: protocol.ReportStarted, PID: int(100 + x.id.Serial)})
	s.take(x, protocol.Report{Kind: protocol.ReportHello})
}

func (s *site) ask(x *placed, what string, m protocol.Message, procs ...*placed) {
	s.last++
	s.asks[s.last] = &asking{x, what, m, procs}
	s.say("%v asks %d: %s %+v", x.id, s.last, what, m)
	s.take(x, protocol.Report{Kind: protocol.ReportFrame, Frame: protocol.Frame{Kind: protocol.KindOf(m), ID: s.last, Body: protocol.Encode(m)}})
}

func (s *site) tell(x *placed, m protocol.Message) {
	s.say("%v tells %T %+v", x.id, m, m)
	s.take(x, protocol.Report{Kind: protocol.ReportFrame, Frame: protocol.Frame{Kind: protocol.KindOf(m), Body: protocol.Encode(m)}})
}

// answered holds an answer to what the twin knows.
func (s *site) answered(id uint32, body []byte) {
	q := s.asks[id]
	if q == nil {
		s.fail("%d is answered, and was not asked", id)
	}
	delete(s.asks, id)
	var r protocol.Reply
	if err := protocol.Decode(&r, body); err != nil {
		s.fail("%v", err)
	}
	err := r.Err()
	if errors.Is(err, protocol.ErrEnding) {
		return
	}
	s.say("  %d (%s): %v", id, q.what, err)
	if err == nil {
		s.done[q.what]++
	}
	decode := func(m protocol.Message) {
		if err := protocol.Decode(m, r.Body); err != nil {
			s.fail("%v", err)
		}
	}
	switch q.what {
	case "reserve":
		m := q.m.(*protocol.Spawn)
		hard := len(m.Parts[0].Will) == 0
		if err != nil {
			return // how many are free the walk looks at
		}
		var b protocol.SpawnBody
		if decode(&b); hard && b.World.Members.Len() != m.Parts[0].N || b.World.Members.Len() < 1 || b.World.Members.Len() > m.Parts[0].N {
			s.fail("%d places of %d, hard %v", b.World.Members.Len(), m.Parts[0].N, hard)
		}
		for i, at := range b.World.Members.All() {
			x := &placed{id: at, host: b.World.Hosts.At(i), owner: q.by, set: b.World.Number}
			s.all[at.Serial] = x
			if name := s.h.cfg.HostNames[x.host]; m.Parts[0].Hosts != nil && !strings.HasPrefix(name, "r") {
				s.fail("a place on %s", name)
			}
		}
	case "start":
		if err == nil && slices.ContainsFunc(q.procs, func(x *placed) bool { return !x.started }) {
			s.fail("it was started")
		}
	case "end":
		x := q.procs[0]
		switch {
		case err == nil:
			var b protocol.EndBody
			if decode(&b); !x.over || x.forked && b.Status != 9 {
				s.fail("%v has ended with %+v", x, b)
			}
		case x.owner == q.by && !q.by.over:
			s.fail("the end of one that it has: %v", err)
		}
	case "attach":
		if err == nil {
			for _, x := range q.procs {
				if !x.joined || x.kin {
					s.fail("%+v is attached", x)
				}
				x.kin = true
			}
		}
	case "wrong":
		if err == nil {
			s.fail("it was done")
		}
	case "kin":
		if x := q.by; err == nil && !x.kin && !s.attaching(x) {
			s.fail("%+v has kin", x)
		} else if err != nil && (x.kin || x.owner != nil && !x.owner.over) && !x.over {
			s.fail("%+v has none: %v", x, err)
		}
	}
}

// attaching: the answer of an Attach may come after that of those who are attached.
func (s *site) attaching(x *placed) bool {
	for _, q := range s.asks {
		if q.what == "attach" && slices.Contains(q.procs, x) {
			return true
		}
	}
	return false
}

// used is how many slots the twin says are taken.
func (s *site) used() (n int) {
	for _, x := range s.all {
		if !x.freed {
			n++
		}
	}
	return n
}

// check holds the head's counts to the twin's.
func (s *site) check() {
	s.t.Helper()
	sizes := s.h.Sizes()
	owned := 0
	for _, x := range s.all {
		if x.owner != nil {
			owned++
		}
	}
	if sizes["places"] != s.used() || sizes["owned"] != owned || s.used() > s.slots {
		s.fail("the head has %d places taken and %d owned, want %d and %d", sizes["places"], sizes["owned"], s.used(), owned)
	}
	for id, q := range s.asks { // nobody waits for what has happened, or never will
		switch {
		case q.what == "end" && (q.procs[0].over || q.procs[0].owner != q.by):
			s.fail("%d still waits for the end of %+v", id, q.procs[0])
		case q.what == "kin" && (q.by.kin || q.by.owner == nil && !s.attaching(q.by)):
			s.fail("%d still waits to be attached: %+v", id, q.by)
		case q.what == "attach" && slices.ContainsFunc(q.procs, func(x *placed) bool { return x.over }):
			s.fail("%d still waits for one that has ended", id)
		}
	}
}

// die ends a process, which was forked.
func (s *site) die(x *placed) {
	s.say("%v is killed", x.id)
	x.over = true
	s.disown(x)
	for id, q := range s.asks {
		if q.by == x { // whoever is dead waits for nothing
			delete(s.asks, id)
		}
	}
	s.h.Ended(x.id, 9)
	s.take(x, protocol.Report{Kind: protocol.ReportHungUp})
	s.take(x, protocol.Report{Kind: protocol.ReportExited, Text: "killed"})
	s.free(x)
}

func (s *site) free(x *placed) {
	x.freed = true
	s.take(x, protocol.Report{Kind: protocol.ReportFreed})
}

// disown: what x has it has no more.
func (s *site) disown(x *placed) {
	for _, y := range s.all {
		if y.owner == x {
			s.lose(y)
		}
	}
}

// lose: nobody has y any more.
func (s *site) lose(y *placed) {
	if y.owner = nil; !y.started {
		y.over, y.freed = true, true
	}
}

// launch carries out a Launch: one in six fails.
func (s *site) launch() {
	l := s.launches[0]
	s.launches = s.launches[1:]
	var list []*placed
	for _, id := range l.procs {
		list = append(list, s.all[id.Serial])
	}
	if n := 0; true {
		for _, at := range l.Places {
			n += at.Count
		}
		if n != len(list) {
			s.fail("places %v of %d processes", l.Places, len(list))
		}
	}
	if s.rng.IntN(6) == 0 {
		s.say("no room for %v", l.procs)
		for _, x := range list {
			x.over, x.freed = true, true
			s.disown(x)
		}
		s.h.Launched(l, protocol.Refused("no room"))
		s.flush()
		return
	}
	starts := s.h.Bind(l)
	s.flush()
	if starts == nil {
		for _, x := range list {
			x.over, x.freed = true, true
		}
		return
	}
	for i, p := range starts {
		if p.Proc != l.procs[i] || !p.Awaited || p.Rank != i || p.Size != len(starts) || p.Host != list[i].host {
			s.fail("started is %+v, want %+v", p, list[i])
		}
		if list[i].forked = true; s.bound[p.Proc.Serial] != 1 {
			s.fail("%v was bound %d times", p.Proc, s.bound[p.Proc.Serial])
		}
	}
	s.h.Launched(l, nil)
	s.flush()
}

// some is one of those of which what holds; nil: there is none.
func (s *site) some(what func(*placed) bool) *placed {
	var list []*placed
	for serial := uint32(1); serial <= s.h.lastProc; serial++ {
		if x := s.all[serial]; x != nil && what(x) {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[s.rng.IntN(len(list))]
}

func lives(x *placed) bool { return x.joined && !x.over }

// ownedBy lists what x has, in some order.
func (s *site) ownedBy(x *placed, what func(*placed) bool) (list []*placed) {
	for serial := uint32(1); serial <= s.h.lastProc; serial++ {
		if y := s.all[serial]; y != nil && y.owner == x && what(y) {
			list = append(list, y)
		}
	}
	s.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), 1+s.rng.IntN(3))]
}

func ids(list []*placed) wire.Members {
	var b wire.MembersBuilder
	for _, x := range list {
		b.Add(wire.Range{First: x.id, Count: 1})
	}
	return b.Members()
}

func (s *site) step() {
	x := s.some(lives)
	if x == nil {
		return
	}
	switch s.rng.IntN(12) {
	case 0, 1:
		s.reserve(x)
	case 2, 3:
		list := s.ownedBy(x, func(y *placed) bool { return !y.started && !y.over })
		if len(list) == 0 {
			return
		}
		for _, y := range list {
			y.started = true
		}
		s.ask(x, "start", &protocol.Spawn{Parts: []protocol.SpawnPart{{N: len(list), Argv: []string{"prog"}}}, Do: protocol.SpawnStart, At: ids(list)}, list...)
	case 4:
		if len(s.launches) > 0 {
			s.launch()
		}
	case 5:
		if y := s.some(func(y *placed) bool { return y.forked && !y.joined && !y.over }); y != nil {
			s.join(y)
		}
	case 6:
		if y := s.some(func(y *placed) bool { return y.forked && !y.over }); y != nil && len(s.all) > 3 {
			s.die(y)
		}
	case 7:
		list := s.ownedBy(x, func(y *placed) bool { return true })
		for _, y := range list {
			s.lose(y)
		}
		s.tell(x, &protocol.GiveBack{Members: ids(list)})
	case 8:
		for _, y := range s.ownedBy(x, func(y *placed) bool { return true }) {
			s.ask(x, "end", &protocol.Proc{Kind: protocol.KindEnd, Proc: y.id}, y)
		}
	case 9:
		s.signal(x)
	case 11:
		s.wrong(x)
	case 10:
		if list := s.ownedBy(x, func(y *placed) bool { return y.started && !y.over && !y.kin && !s.attaching(y) }); len(list) > 0 {
			s.ask(x, "attach", &protocol.Attach{Parents: wire.MembersOf(x.id), Procs: ids(list)}, list...)
		}
		s.ask(x, "kin", &protocol.Empty{Kind: protocol.KindAttachment})
	}
}

// wrong asks for what it may not have: of places of others, or none, and of its own in the
// wrong state. It is refused, and nothing changes.
func (s *site) wrong(x *placed) {
	y := s.some(func(y *placed) bool { return y.owner != x || y.started })
	if y == nil {
		return
	}
	list := []*placed{y}
	if mine := s.ownedBy(x, func(y *placed) bool { return !y.started }); len(mine) > 0 && s.rng.IntN(2) == 0 {
		list = append(list, mine[0]) // beside one that is right
	}
	start := &protocol.Spawn{Parts: []protocol.SpawnPart{{N: len(list), Argv: []string{"prog"}}}, Do: protocol.SpawnStart, At: ids(list)}
	switch s.rng.IntN(5) {
	case 0:
		start.Parts[0].N++
	case 1:
		start.At = wire.MembersOf(wire.ProcID{Job: 8, Serial: y.id.Serial})
		start.Parts[0].N = 1
	}
	s.ask(x, "wrong", start)
	if y.owner != x || !y.started {
		s.ask(x, "wrong", &protocol.Attach{Parents: wire.MembersOf(x.id), Procs: ids(list)})
	}
	s.ask(x, "wrong", &protocol.Attach{Parents: wire.MembersOf(wire.ProcID{Job: 7, Serial: 1 << 30}), Procs: ids(list)})
	s.ask(x, "wrong", &protocol.Attach{Parents: wire.MembersOf(x.id)})
	if y.owner != x {
		s.ask(x, "wrong", &protocol.Proc{Kind: protocol.KindEnd, Proc: y.id})
		s.tell(x, &protocol.GiveBack{Members: ids(list[:1])})
	}
}

// reserve asks for places, hard or soft, on hosts that a pattern matches or on any; it is
// answered or refused at once, as nobody comes free, unless some may.
func (s *site) reserve(x *placed) {
	part := protocol.SpawnPart{N: 1 + s.rng.IntN(4)}
	soft := s.rng.IntN(2) == 0
	if soft {
		part.Will = []protocol.Counts{{From: 1, To: uint32(part.N), Step: 1}}
	}
	if s.rng.IntN(2) == 0 {
		part.Hosts = []string{"r*"}
	}
	free, before := s.slots-s.used(), len(s.all)
	s.ask(x, "reserve", &protocol.Spawn{Parts: []protocol.SpawnPart{part}, Do: protocol.SpawnReserve})
	got := len(s.all) - before
	if q := s.asks[s.last]; q != nil {
		if !soft && free >= part.N {
			s.fail("%d places of %d free are waited for", part.N, free)
		}
		return
	}
	switch {
	case !soft && free >= part.N && got != part.N, !soft && free < part.N && got != 0, soft && got > max(0, free):
		s.fail("%d places of %d, %d free, soft %v", got, part.N, free, soft)
	case soft && got == 0 && free > 0 && s.h.freeOn(s.matching(part.Hosts)) > 0:
		s.fail("no places of %d, though %d are free", part.N, free)
	}
}

func (s *site) matching(names []string) []uint32 {
	on, err := s.h.hostsFor(&spawn{do: protocol.SpawnReserve}, &protocol.SpawnPart{Hosts: names})
	if err != nil {
		s.fail("%v", err)
	}
	return on
}

// signal sends one to what x has started, or to what it has not.
func (s *site) signal(x *placed) {
	y := s.some(func(y *placed) bool { return true })
	before := s.signals[y.id.Serial]
	s.ask(x, "signal", &protocol.Signal{Signal: 15, Members: wire.MembersOf(y.id)})
	may := y.forked && !y.over && y.owner == x
	if sent := s.signals[y.id.Serial] > before; may && !sent || sent && (y.over || !y.forked) {
		s.fail("a signal of %v to %+v was sent: %v", x.id, y, sent)
	}
}

// finish ends all. Nothing may be left.
func (s *site) finish(ends bool) {
	if ends {
		s.say("the job ends")
		for _, x := range s.all {
			if x.owner != nil && !x.started {
				s.lose(x)
			}
		}
		s.h.End("over")
		s.flush()
		if len(s.asks) > 0 {
			s.fail("%d still wait", len(s.asks))
		}
	}
	s.check()
	for {
		for len(s.launches) > 0 {
			s.launch()
		}
		x := s.some(func(x *placed) bool { return x.forked && !x.over })
		if x == nil {
			break
		}
		s.die(x)
		s.check()
	}
	for what, n := range s.h.Sizes() {
		if n != 0 {
			s.fail("%d %s in the end: %+v", n, what, s.h.Sizes())
		}
	}
}

// TestSoakPlaces: processes take places, start programs there, signal, attach, give back
// and are killed at random, and the head has what its twin has at every step: slots are
// given back when places are given back unstarted, when who has them dies, and at the end
// of the job.
func TestSoakPlaces(t *testing.T) {
	seeds := uint64(testlab.Rounds(500, 20_000))
	done := map[string]int{}
	for seed := range seeds {
		s := newSite(t, seed, 1+int(seed%3), done)
		for range 150 {
			s.step()
			s.now += time.Duration(s.rng.IntN(1000)) * time.Millisecond
			s.h.Tick()
			s.flush()
			s.check()
		}
		s.finish(seed%2 == 0)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, what := range []string{"reserve", "start", "end", "attach", "kin", "signal"} {
		if done[what] < 100 {
			t.Errorf("%d times %s", done[what], what)
		}
	}
	t.Log(done)
}

// Places are on the hosts that a pattern matches, and soft ones share no slot.
func TestPlacesLike(t *testing.T) {
	for _, x := range []struct {
		part protocol.SpawnPart
		on   string // hosts of the places; of an error, a part of it
	}{
		{protocol.SpawnPart{N: 3, Hosts: []string{"b*"}}, "blue blue blue"},
		{protocol.SpawnPart{N: 2, Hosts: []string{"RO?E"}}, "rose rose"},
		{protocol.SpawnPart{N: 5, Hosts: []string{"r*"}}, "red rose rose rose red"},
		{protocol.SpawnPart{N: 5, Hosts: []string{"*"}}, "red rose rose rose blue"},
		{protocol.SpawnPart{N: 5, Hosts: []string{"r*", "blue"}, Will: []protocol.Counts{{From: 1, To: 5, Step: 1}}}, "red rose rose rose blue"},
		{protocol.SpawnPart{N: 5, Hosts: []string{"[r]*"}, Will: []protocol.Counts{{From: 1, To: 5, Step: 1}}}, "red rose rose rose"},
		{protocol.SpawnPart{N: 1, Hosts: []string{"x*"}}, "no host like"},
		{protocol.SpawnPart{N: 1, Hosts: []string{"[r"}}, "no pattern"},
		{protocol.SpawnPart{N: 1, Hosts: []string{"green"}}, "no host \"green\""},
	} {
		s := newSite(t, 1, 3, map[string]int{})
		places, _, err := s.h.placeSpawn(&spawn{do: protocol.SpawnReserve, parts: []protocol.SpawnPart{x.part}})
		var on []string
		for _, at := range places {
			on = append(on, slices.Repeat([]string{s.h.cfg.HostNames[at.Host]}, at.Count)...)
		}
		slices.Sort(on)
		want := strings.Fields(x.on)
		slices.Sort(want)
		if err != nil && !strings.Contains(err.Error(), x.on) || err == nil && !slices.Equal(on, want) {
			t.Errorf("%+v: on %v, %v, want %s", x.part, on, err, x.on)
		}
	}
}
