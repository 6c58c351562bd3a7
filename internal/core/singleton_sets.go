// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/base/wire"
	"gompi/internal/control/change"
	"gompi/internal/control/protocol"
)

// Process sets of a process that nobody launched: each is its world under another
// number, or empty.

// singletonSet is a process set that the process holds.
type singletonSet struct {
	holds int
	names []string
	vals  map[string][]byte
	had   protocol.SetUse
}

// Ask answers what the head would say of sets.
func (a *singleton) Ask(ctx context.Context, m, body protocol.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := m.(type) {
	case *protocol.Empty: // idle or busy, which interests nobody
		return nil
	case *protocol.Text:
		n, err := a.number(m.Text)
		if err != nil {
			return err
		}
		a.sets[n].holds++ // until Release
		return a.describe(n, m.Text, body)
	case *protocol.Set:
		return a.describe(m.Number, protocol.SetURI(a.world.Members.At(0).Job, m.Number), body)
	case *protocol.News:
		*body.(*protocol.NewsBody) = protocol.NewsBody{Next: m.Since}
		return nil
	case *protocol.Algebra:
		return a.algebra(m, body.(*protocol.SetsBody))
	case *protocol.Submit:
		*body.(*protocol.OpBody) = protocol.OpBody{State: change.Refused, Why: protocol.WhyOther, Text: "nobody starts processes: start the program with gompirun"}
		return nil
	case *protocol.SetPut:
		s := a.sets[m.Set]
		if s == nil {
			return a.gone(m.Set)
		}
		s.vals[m.Put.Key] = append([]byte{}, m.Put.Val...)
		return nil
	case *protocol.SetGet:
		s := a.sets[m.Set]
		if s == nil {
			return a.gone(m.Set)
		}
		b := body.(*protocol.ValuesBody)
		for _, k := range m.Keys {
			v, ok := s.vals[k]
			if !ok && m.Wait {
				return fmt.Errorf("key %q: %w", k, errSingleton) // nobody else can put it
			}
			b.Values = append(b.Values, protocol.Value{There: ok, Val: v})
		}
		return nil
	}
	return errSingleton
}

func (*singleton) gone(n uint32) error {
	return protocol.NotFound("process set %d: %v", n, errSingleton)
}

// add makes a set that is held once.
func (a *singleton) add() (n uint32, s *singletonSet) {
	n, s = a.next, &singletonSet{holds: 1, vals: map[string][]byte{}}
	a.next++
	a.sets[n] = s
	return n, s
}

// release ends a hold; the world stays.
func (a *singleton) release(n uint32) {
	if s := a.sets[n]; s != nil {
		if s.holds--; s.holds <= 0 && n != a.world.Number {
			delete(a.sets, n)
		}
	}
}

// number finds a set by its name.
func (a *singleton) number(name string) (uint32, error) {
	switch name {
	case protocol.WorldURI, protocol.SelfURI, protocol.MainURI:
		return a.world.Number, nil
	}
	for n, s := range a.sets {
		if slices.Contains(s.names, name) || name == protocol.SetURI(a.world.Members.At(0).Job, n) {
			return n, nil
		}
	}
	return 0, protocol.NotFound("process set %q: %v", name, errSingleton)
}

func (a *singleton) describe(n uint32, uri string, body protocol.Message) error {
	s := a.sets[n]
	if s == nil {
		return a.gone(n)
	}
	b := body.(*protocol.DescribeBody)
	b.Set = wire.Set{URI: uri, Number: n, Members: a.world.Members}
	if b.Use = s.had; n == a.world.Number {
		b.Use.Opened = max(b.Use.Opened, 1)
	}
	return nil
}

// algebra makes sets of none or of one process.
func (a *singleton) algebra(m *protocol.Algebra, b *protocol.SetsBody) error {
	if len(m.In) == 0 {
		return protocol.Refused("no process set to make others of")
	}
	first, other, all := m.In[0] != 0, false, true
	for _, n := range m.In[1:] {
		other, all = other || n != 0, all && n != 0
	}
	has := []bool{first}
	switch m.Do {
	case protocol.Union:
		has[0] = first || other
	case protocol.Difference:
		has[0] = first && !other
	case protocol.Intersection:
		has[0] = first && all
	case protocol.Split:
		has = nil
		total := uint32(0)
		for _, n := range m.Sizes {
			has = append(has, n == 1)
			total += n
		}
		if (total == 1) != first || total > 1 || len(m.In) > 1 {
			return protocol.Refused("parts of %d processes together of a set of at most 1", total)
		}
	}
	for i, has := range has {
		s := protocol.SetName{Name: protocol.EmptyURI}
		if has {
			s = protocol.SetName{Number: a.next, Name: protocol.SetURI(a.world.Members.At(0).Job, a.next)}
			if i < len(m.Names) && m.Names[i] != "" {
				s.Name = protocol.AppScheme + strings.TrimPrefix(m.Names[i], protocol.AppScheme)
				if _, err := a.number(s.Name); err == nil {
					return protocol.Refused("the name %q is taken", s.Name)
				}
			}
			_, made := a.add()
			made.names = []string{s.Name}
		}
		b.Sets = append(b.Sets, s)
	}
	return nil
}

// Say has nobody who would want to know.
func (a *singleton) Say(protocol.Message) error { return nil }

// Tell hears what it has had of a set, and that it holds it no more.
func (a *singleton) Tell(m protocol.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := m.(*protocol.Release); ok {
		if s := a.sets[m.Number]; s != nil && m.Use != (protocol.SetUse{}) {
			s.had = m.Use
		}
		a.release(m.Number)
	}
	return nil
}
