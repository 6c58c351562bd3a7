// SPDX-License-Identifier: Apache-2.0

package head

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// The names of the processes that an operation waits for, in messages.

// maxNamed is how many processes are named at once.
const maxNamed = 8

// Names returns the names of processes: their ranks in the main set, or the names that they
// will get.
func (o owner) Names(list []wire.ProcID) string { return o.h.who(list) }

// Ended names a process that has ended, with the status or the signal. Where a launcher
// has said how, that begins with its name.
func (o owner) Ended(p wire.ProcID) string {
	who, how := o.h.who([]wire.ProcID{p}), howPast
	if q := o.h.proc(p); q != nil && q.how != "" {
		how = q.how
	}
	if strings.HasPrefix(how, who) {
		return how
	}
	return who + ": " + how
}

func (h *Head) who(list []wire.ProcID) string {
	main := h.sets[h.main]
	var ranks []int
	var others []string
	for _, id := range list {
		r := -1
		if main != nil {
			r = main.members.Index(id)
		}
		switch p := h.proc(id); {
		case r >= 0:
			ranks = append(ranks, r)
		case p == nil:
			others = append(others, fmt.Sprintf("process %d", id.Serial))
		case p.comes != nil:
			others = append(others, fmt.Sprintf("new.%d", p.rank))
		default:
			others = append(others, fmt.Sprintf("process %d (pid %d)", id.Serial, p.pid))
		}
	}
	slices.Sort(ranks)
	var names []string
	for i, r := range ranks {
		if names = append(names, fmt.Sprint(r)); i == 0 {
			names[0] = fmt.Sprintf("rank %d", r)
		}
	}
	if len(ranks) > 1 {
		names[0] = fmt.Sprintf("ranks %d", ranks[0])
	}
	names = append(names, others...)
	switch n := len(names); {
	case n == 0:
		return "nobody"
	case n > maxNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), n-maxNamed)
	}
	return strings.Join(names, ", ")
}

// Looks is a look at the pages of all changes that members see.
type Looks struct {
	left map[pageOn]struct{} // what was not reported yet
	done chan struct{}       // closed when left is empty
}

// Done is closed when all agents have said how far the members are.
func (l *Looks) Done() <-chan struct{} { return l.done }

// BeginLooks asks how far the members are by the pages of changes that are decided
// there. EndLooks must follow.
func (h *Head) BeginLooks() *Looks {
	l := &Looks{left: map[pageOn]struct{}{}, done: make(chan struct{})}
	for _, o := range h.ops {
		if o.body.State != change.Ready && o.body.State != change.Adopting || o.ballot != nil {
			continue
		}
		for _, at := range o.pages {
			if f := h.follows[at.set]; f != nil && f.op == o {
				for host := range f.hosts {
					l.left[pageOn{at.set, host}] = struct{}{}
				}
				h.page(f, protocol.PageCommand{Do: protocol.PagePoll})
			}
		}
	}
	if len(l.left) == 0 {
		close(l.done)
		return l
	}
	h.looks[l] = struct{}{}
	return l
}

// EndLooks: nobody waits for the answers any more.
func (h *Head) EndLooks(l *Looks) { delete(h.looks, l) }

// looked: a host has reported from the page of a set.
func (h *Head) looked(at pageOn) {
	for l := range h.looks {
		if delete(l.left, at); len(l.left) == 0 {
			delete(h.looks, l)
			close(l.done)
		}
	}
}

// noteLate keeps what a host says of whom a change waits for.
func (h *Head) noteLate(o *op, at pageOn, l *protocol.Stuck) {
	if o.late == nil {
		o.late = map[pageOn]protocol.Stuck{}
	}
	o.late[at] = *l
}

// waitsFor says for whom an operation waits.
func (h *Head) waitsFor(o *op) string {
	switch text := h.book.WaitsFor(o.number); o.body.State {
	case change.Ready, change.Adopting:
		if slow := h.slow(o); slow != "" {
			return slow
		}
		return text
	default:
		return text
	}
}

// slow names who has not come to the iteration in which all are handed a change, or
// has not voted on it, as far as that is known; "": it is not.
func (h *Head) slow(o *op) string {
	if !o.fixed {
		return ""
	}
	if o.ballot != nil {
		var left []wire.ProcID
		for serial := range o.ballot.left {
			left = append(left, wire.ProcID{Job: h.cfg.Job, Serial: serial})
		}
		if len(left) == 0 || o.ballot.verdict == 0 {
			return ""
		}
		return "the votes of " + h.who(left)
	}
	var behind, silent some
	at := uint64(0)
	for _, l := range o.late {
		at = max(at, l.At)
		h.tally(&behind, &l.Behind)
		if o.body.State == change.Adopting {
			h.tally(&silent, &l.Silent)
		}
	}
	// A process that leaves by another change has no vote on this one.
	silent.known = slices.DeleteFunc(silent.known, func(id wire.ProcID) bool { return !slices.Contains(o.voters, id) })
	for _, p := range h.newcomers(o) {
		if _, ok := o.voted[p.id.Serial]; !ok {
			silent.known = append(silent.known, p.id)
		}
	}
	var list []string
	if len(behind.known) > 0 {
		text := h.whoOf(&behind) + " to check"
		if at > 0 {
			text = fmt.Sprintf("%s to come to iteration %d", h.whoOf(&behind), at-1)
		}
		list = append(list, text)
	}
	if len(silent.known) > 0 {
		list = append(list, "the votes of "+h.whoOf(&silent))
	}
	return strings.Join(list, "; ")
}

// some are processes that are known, and so many more.
type some struct {
	known []wire.ProcID
	more  int
}

// tally adds what a page says, but for those that have ended.
func (h *Head) tally(s *some, more *protocol.Stragglers) {
	for _, serial := range more.First {
		if id := (wire.ProcID{Job: h.cfg.Job, Serial: serial}); h.takesPart(id) {
			s.known = append(s.known, id)
		}
	}
	s.more += max(0, int(more.N)-len(more.First))
}

// whoOf names them, the first ones.
func (h *Head) whoOf(s *some) string {
	text := h.who(s.known)
	if s.more > 0 {
		text += fmt.Sprintf(" and %d more", s.more)
	}
	return text
}

// whyLate completes why an operation has not happened: a deadline that is over while
// members take a change up says whom it waited for.
func (h *Head) whyLate(o *op, why error) error {
	if slow := h.slow(o); slow != "" && errors.Is(why, change.ErrDeadline) {
		return fmt.Errorf("%w: it waited for %s", change.ErrDeadline, slow)
	}
	return why
}
