// SPDX-License-Identifier: Apache-2.0

package head

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// PSet is a set of the first world that has a name.
type PSet struct {
	Name  string // app://Name
	Ranks []int  // in the order of the set
}

// naming is one piece of news: a set has this name. Number 0: it is gone.
type naming struct {
	news   uint64
	number uint32
	name   string
}

// appName is a name that somebody wants for a set, with its scheme.
func appName(name string) (string, error) {
	full := protocol.AppScheme + strings.TrimPrefix(name, protocol.AppScheme)
	switch rest := full[len(protocol.AppScheme):]; {
	case rest == "" || strings.Contains(rest, "://") || strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", protocol.Refused("%q is no name of a process set", protocol.Clip(name, protocol.MaxName))
	case len(full) > protocol.MaxName:
		return "", protocol.Refused("a name of %d bytes, at most %d allowed", len(full), protocol.MaxName)
	}
	return full, nil
}

// reserveName keeps a name for a set that is still to come: nameSet must follow, or
// unreserveName. An error: it is taken, or none.
func (h *Head) reserveName(name string) error {
	full, err := appName(name)
	if err != nil {
		return err
	}
	if n := h.setBytes + nameBytes(full); n > maxSetBytes {
		return noSetBytes(n)
	}
	if number, ok := h.names[full]; ok {
		if number == 0 {
			return protocol.Refused("the name %q is taken by a process set that is still to come", full)
		}
		return protocol.Refused("the name %q is taken by process set %d", full, number)
	}
	h.names[full] = 0
	h.setBytes += nameBytes(full)
	return nil
}

// nameBytes is about what the name of a set takes, in the tables and as news.
func nameBytes(full string) int { return len(full) + 2*entryBytes }

// full says why a set can have no further name; nil: it can.
func (t *set) full() error {
	if len(t.names) < protocol.MaxNames {
		return nil
	}
	return protocol.TooMany("the process set has %d names", len(t.names))
}

// unreserveName gives up a name that no set has got.
func (h *Head) unreserveName(name string) {
	full, err := appName(name)
	if number, ok := h.names[full]; err == nil && ok && number == 0 {
		delete(h.names, full)
		h.setBytes -= nameBytes(full)
	}
}

// nameSet gives a living set, which is not full, a name that was reserved.
func (h *Head) nameSet(number uint32, name string) {
	full, err := appName(name)
	if at, ok := h.names[full]; err != nil || !ok || at != 0 {
		panic(fmt.Sprintf("gompi: BUG: the name %q of set %d was not reserved", name, number))
	}
	h.named(number, full)
}

// named gives a living set a name that counts already.
func (h *Head) named(number uint32, full string) {
	h.names[full] = number
	t := h.sets[number]
	t.names = append(t.names, full)
}

// setName is what a living set is called: its first name, or its own.
func (h *Head) setName(number uint32) protocol.SetName {
	if t := h.sets[number]; t != nil && len(t.names) > 0 {
		return protocol.SetName{Number: number, Name: t.names[0]}
	}
	return protocol.SetName{Number: number, Name: protocol.SetURI(h.cfg.Job, number)}
}

// publishSet makes a living set news, under all its names or its own: for its
// members and for kin.
func (h *Head) publishSet(number uint32, kin wire.Members) {
	t := h.sets[number]
	t.kin = kin
	for _, name := range t.names {
		h.publish(number, name)
	}
	if len(t.names) == 0 {
		h.publish(number, protocol.SetURI(h.cfg.Job, number))
	}
}

// publish makes a name news, once.
func (h *Head) publish(number uint32, name string) {
	t := h.sets[number]
	if _, ok := t.news[name]; ok {
		return
	}
	if t.news == nil {
		t.news = map[string]uint64{}
	}
	h.lastNews++
	t.news[name] = h.lastNews
	h.news = append(h.news, naming{h.lastNews, number, name})
}

// unname forgets the names of a set that is gone. Old news are taken out when half of them
// are.
func (h *Head) unname(t *set) {
	for _, name := range t.names {
		delete(h.names, name)
		h.setBytes -= nameBytes(name)
	}
	for _, news := range t.news {
		h.news[h.newsAt(news)] = naming{news: news}
	}
	h.oldNews += len(t.news)
	t.names, t.news = nil, nil
	if 2*h.oldNews >= len(h.news) {
		h.news = slices.DeleteFunc(h.news, func(n naming) bool { return n.number == 0 })
		h.oldNews = 0
	}
}

// newsAt is where the first news are that are as late as this.
func (h *Head) newsAt(news uint64) int {
	i, _ := slices.BinarySearchFunc(h.news, news, func(n naming, v uint64) int { return cmp.Compare(n.news, v) })
	return i
}

// mayKnow reports whether p may hear of a name.
func (h *Head) mayKnow(p *proc, n *naming) bool {
	t := h.sets[n.number]
	return strings.HasPrefix(n.name, protocol.AppScheme) || strings.HasPrefix(n.name, protocol.HostScheme) ||
		t.members.Index(p.id) >= 0 || t.kin.Index(p.id) >= 0
}

// maxNewsBytes bounds the names in one answer.
const maxNewsBytes = 1 << 20

// newsSince returns the sets that have become known since a point of the job's history.
func (h *Head) newsSince(p *proc, m *protocol.News) (*protocol.NewsBody, error) {
	i := h.newsAt(m.Since + 1)
	b := &protocol.NewsBody{Next: h.lastNews}
	size := 0
	for ; i < len(h.news); i++ {
		n := &h.news[i]
		if n.number == 0 || !h.mayKnow(p, n) {
			continue
		}
		if size += len(n.name); len(b.Sets) == protocol.MaxNews || size > maxNewsBytes {
			b.Next, b.More = n.news-1, true
			break
		}
		b.Sets = append(b.Sets, protocol.SetName{Number: n.number, Name: n.name})
	}
	return b, nil
}

// firstSets makes the sets that the first world begins with: it is the main set, and
// its members hold those of the command line and of each host.
func (h *Head) firstSets(world wire.Members) {
	line := func(name string, m wire.Members) {
		s := h.newSet(m)
		h.setBytes += nameBytes(name)
		h.named(s.Number, name)
		h.publishSet(s.Number, wire.Members{})
		for _, id := range m.All() {
			p := h.proc(id)
			p.lines = append(p.lines, s.Number)
			h.hold(s.Number)
		}
	}
	for host, name := range h.cfg.HostNames {
		var b wire.MembersBuilder
		for _, id := range world.All() {
			if p := h.proc(id); p.host == uint32(host) {
				b.Add(wire.Range{First: id, Count: 1})
			}
		}
		if m := b.Members(); m.Len() > 0 {
			line(protocol.HostScheme+name, m)
		}
	}
	for _, s := range h.cfg.PSets {
		var b wire.MembersBuilder
		for _, r := range s.Ranks {
			b.Add(wire.Range{First: world.At(r), Count: 1})
		}
		line(protocol.AppScheme+s.Name, b.Members())
	}
}

// fits says why a world of so many processes cannot be the first one.
func (h *Head) fits(n int) error {
	for _, s := range h.cfg.PSets {
		if r := slices.Max(s.Ranks); r >= n {
			return protocol.Refused("process set %q has rank %d, and there are %d processes", s.Name, r, n)
		}
	}
	return nil
}

// check refuses what cannot be named so.
func (s *PSet) check() error {
	if _, err := appName(s.Name); err != nil || strings.HasPrefix(s.Name, protocol.AppScheme) {
		return fmt.Errorf("control: %q is no name of a process set", protocol.Clip(s.Name, protocol.MaxName))
	}
	if len(s.Ranks) == 0 {
		return fmt.Errorf("control: process set %q has no ranks", s.Name)
	}
	seen := map[int]bool{}
	for _, r := range s.Ranks {
		if r < 0 || seen[r] {
			return fmt.Errorf("control: process set %q has rank %d twice, or as none", s.Name, r)
		}
		seen[r] = true
	}
	return nil
}
