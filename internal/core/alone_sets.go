// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/change"
	"gompi/internal/control"
	"gompi/internal/wire"
)

// Process sets of a process that nobody launched: each is its world under another
// number, or empty.

// aloneSet is what it keeps of one that it holds.
type aloneSet struct {
	holds int
	names []string
	vals  map[string][]byte
	had   control.Had
}

// Ask answers what the head would say of sets.
func (a *alone) Ask(ctx context.Context, m, body control.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m := m.(type) {
	case *control.Empty: // idle or busy, which interests nobody
		return nil
	case *control.Text:
		n, err := a.number(m.Text)
		if err != nil {
			return err
		}
		a.sets[n].holds++ // until Release
		return a.describe(n, m.Text, body)
	case *control.Set:
		return a.describe(m.Number, control.SetURI(a.world.Members.At(0).Job, m.Number), body)
	case *control.News:
		*body.(*control.NewsBody) = control.NewsBody{Next: m.Since}
		return nil
	case *control.Algebra:
		return a.algebra(m, body.(*control.SetsBody))
	case *control.Submit:
		*body.(*control.OpBody) = control.OpBody{State: change.Refused, Why: control.WhyOther, Text: "nobody starts processes: start the program with gompirun"}
		return nil
	case *control.SetPut:
		s := a.sets[m.Set]
		if s == nil {
			return a.gone(m.Set)
		}
		s.vals[m.Put.Key] = append([]byte{}, m.Put.Val...)
		return nil
	case *control.SetGet:
		s := a.sets[m.Set]
		if s == nil {
			return a.gone(m.Set)
		}
		b := body.(*control.ValuesBody)
		for _, k := range m.Keys {
			v, ok := s.vals[k]
			if !ok && m.Wait {
				return fmt.Errorf("key %q: %w", k, errAlone) // nobody else can put it
			}
			b.Values = append(b.Values, control.Value{There: ok, Val: v})
		}
		return nil
	}
	return errAlone
}

func (*alone) gone(n uint32) error { return control.NotFound("process set %d: %v", n, errAlone) }

// add makes a set that is held once.
func (a *alone) add() (n uint32, s *aloneSet) {
	n, s = a.next, &aloneSet{holds: 1, vals: map[string][]byte{}}
	a.next++
	a.sets[n] = s
	return n, s
}

// release ends a hold; the world stays.
func (a *alone) release(n uint32) {
	if s := a.sets[n]; s != nil {
		if s.holds--; s.holds <= 0 && n != a.world.Number {
			delete(a.sets, n)
		}
	}
}

// number finds a set by its name.
func (a *alone) number(name string) (uint32, error) {
	switch name {
	case control.WorldURI, control.SelfURI, control.MainURI:
		return a.world.Number, nil
	}
	for n, s := range a.sets {
		if slices.Contains(s.names, name) || name == control.SetURI(a.world.Members.At(0).Job, n) {
			return n, nil
		}
	}
	return 0, control.NotFound("process set %q: %v", name, errAlone)
}

func (a *alone) describe(n uint32, uri string, body control.Message) error {
	s := a.sets[n]
	if s == nil {
		return a.gone(n)
	}
	b := body.(*control.DescribeBody)
	b.Set = wire.Set{URI: uri, Number: n, Members: a.world.Members}
	if b.Had = s.had; n == a.world.Number {
		b.Had.Opened = max(b.Had.Opened, 1)
	}
	return nil
}

// algebra makes sets of none or of one process.
func (a *alone) algebra(m *control.Algebra, b *control.SetsBody) error {
	if len(m.In) == 0 {
		return control.Refused("no process set to make others of")
	}
	first, other, all := m.In[0] != 0, false, true
	for _, n := range m.In[1:] {
		other, all = other || n != 0, all && n != 0
	}
	has := []bool{first}
	switch m.Do {
	case control.Union:
		has[0] = first || other
	case control.Difference:
		has[0] = first && !other
	case control.Intersection:
		has[0] = first && all
	case control.Split:
		has = nil
		total := uint32(0)
		for _, n := range m.Sizes {
			has = append(has, n == 1)
			total += n
		}
		if (total == 1) != first || total > 1 || len(m.In) > 1 {
			return control.Refused("parts of %d processes together of a set of at most 1", total)
		}
	}
	for i, has := range has {
		s := control.SetName{Name: control.EmptyURI}
		if has {
			s = control.SetName{Number: a.next, Name: control.SetURI(a.world.Members.At(0).Job, a.next)}
			if i < len(m.Names) && m.Names[i] != "" {
				s.Name = control.AppScheme + strings.TrimPrefix(m.Names[i], control.AppScheme)
				if _, err := a.number(s.Name); err == nil {
					return control.Refused("the name %q is taken", s.Name)
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
func (a *alone) Say(control.Message) error { return nil }

// Tell hears what it has had of a set, and that it holds it no more.
func (a *alone) Tell(m control.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m, ok := m.(*control.Release); ok {
		if s := a.sets[m.Number]; s != nil && m.Had != (control.Had{}) {
			s.had = m.Had
		}
		a.release(m.Number)
	}
	return nil
}
