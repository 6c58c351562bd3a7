// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"errors"
	"sync"

	"gompi/internal/base/wire"
	"gompi/internal/control/changepage"
	"gompi/internal/control/protocol"
)

// errNotHere: the page does not say what the process is handed, or says what cannot
// be. The head is asked.
var errNotHere = errors.New("it does not stand on the page")

// handedBody is what a page says that its members are handed with a change: the page
// of the Result, Bytes 0 for who is not in it, and the change.
func (g *page) handedBody(n changepage.Change) (b protocol.PageBody, c protocol.ChangeBody, err error) {
	raw, ok := g.lines.Body(n)
	if !ok {
		return b, c, errNotHere
	}
	if err := protocol.Decode(&b, raw); err != nil {
		return b, c, err
	}
	if err := protocol.Decode(&c, b.Rest); err != nil {
		return b, c, err
	}
	b.Rest = nil
	self, in := g.proc.Self, false
	for i := range c.Inputs {
		in = in || c.Inputs[i].Number == g.set && c.Inputs[i].Members.Index(self) >= 0
	}
	if !in {
		return b, c, errNotHere
	}
	if c.Role = protocol.RoleStaying; c.Leaving.Members.Index(self) >= 0 {
		c.Role = protocol.RoleLeaving
	}
	at := c.Result.Members.Index(self)
	if at < 0 {
		b = protocol.PageBody{}
		return b, c, nil
	}
	place, members := onHost(&c.Result, at)
	if b.X.Bytes < int64(changepage.Bytes(members)) || b.Members != members {
		return b, c, errNotHere
	}
	b.Place = place
	return b, c, nil
}

// onHost is the how manyth of its host the i-th member of a set is, and how many there
// are.
func onHost(s *wire.Set, i int) (place, members int) {
	host, at := s.Hosts.At(i), 0
	for _, r := range s.Hosts {
		if r.Host == host {
			place += min(r.Count, max(0, i-at))
			members += r.Count
		}
		at += r.Count
	}
	return place, members
}

// take is a change that the page hands to this process, with the page of its Result.
// An error: the head is to be asked. Gone: it was rolled back, and nothing is handed.
func (w *Watcher) take(g *page, n changepage.Change) (x *Change, gone bool, err error) {
	b, c, err := g.handedBody(n)
	if err != nil {
		return nil, false, err
	}
	switch ok, again := g.member.Take(n); {
	case !ok:
		return nil, true, nil
	case again:
		return nil, false, errNotHere // something went wrong with it
	}
	x = w.newChange(g, n, c)
	x.board = b.Area
	if b.X.Bytes > 0 {
		if x.kept.next, err = openPage(g.proc, c.Result.Number, b, [protocol.FrameFDs]int{-1, -1}, w.opts); err != nil {
			x.kept.release()
			return nil, false, err
		}
	}
	return x, false, nil
}

// forgo gives back what the page would hand to this process, which looks no more.
func (g *page) forgo() {
	n, s := g.lines.Last()
	if s == changepage.RolledBack {
		return
	}
	if b, _, err := g.handedBody(n); err == nil && b.X.Bytes > 0 {
		if ok, again := g.member.Take(n); ok && !again {
			leavePage(g.proc, &b)
		}
	}
}

// kept are the pages that a change keeps: of its input, and of its Result until the
// watcher goes on with it.
type kept struct {
	mu          sync.Mutex
	input, next *page
}

// end lets go of what nobody goes on with.
func (k *kept) end(committed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(&k.input)
	if !committed {
		k.drop(&k.next)
	}
}

func (k *kept) release() { k.end(false) }

func (k *kept) drop(g **page) {
	if *g != nil {
		(*g).release()
		*g = nil
	}
}

// ahead is the page of the Result, which stays theirs.
func (k *kept) ahead() *page {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.next
}

// goOn is the page of the Result, which is the caller's from now on; nil: there is none.
func (k *kept) goOn() *page {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.next
	k.next = nil
	return g
}
