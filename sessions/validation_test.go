// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gompi/mpi"
	"gompi/mpitest"
	"gompi/sessions"
)

// Whatever stands in a request, it is refused by an error, and its process goes on.
func TestMadRequests(t *testing.T) {
	long := strings.Repeat("x", 2000)
	grow := func(f func(*sessions.Request)) sessions.Request {
		r := sessions.Request{Kind: sessions.Grow, In: toMain, Add: []int{1}}
		f(&r)
		return r
	}
	for what, r := range map[string]sessions.Request{
		"no kind":           {In: toMain},
		"unknown kind":      {Kind: 77, In: toMain},
		"no parts":          {Kind: sessions.Multi},
		"a part of parts":   {Kind: sessions.Multi, Parts: []sessions.Request{{Kind: sessions.Multi}}},
		"deep parts":        {Kind: sessions.Multi, Parts: []sessions.Request{{Kind: sessions.Multi, Parts: []sessions.Request{{Kind: sessions.Grow}}}}},
		"parts of grow":     grow(func(r *sessions.Request) { r.Parts = []sessions.Request{{}, {}} }),
		"another order":     grow(func(r *sessions.Request) { r.Start = 4 }),
		"another place":     grow(func(r *sessions.Request) { r.Place = 2 }),
		"sets on hosts":     {Kind: sessions.Add, Add: []int{1, 1}, Start: sessions.StartMultiple},
		"a named group":     grow(func(r *sessions.Request) { r.Start, r.Names = sessions.StartParallel, []string{"new"} }),
		"an order of multi": {Kind: sessions.Multi, Start: sessions.StartSequential, Parts: []sessions.Request{grow(func(*sessions.Request) {})}},
		"an ordered part":   {Kind: sessions.Multi, Parts: []sessions.Request{grow(func(r *sessions.Request) { r.Start = sessions.StartSequential })}},
		"many parts":        {Kind: sessions.Multi, Parts: make([]sessions.Request, 10_000)},
		"less than none":    grow(func(r *sessions.Request) { r.Add = []int{-1} }),
		"too many":          grow(func(r *sessions.Request) { r.Add = []int{1 << 40} }),
		"many sets":         {Kind: sessions.Add, Add: make([]int, 100_000)},
		"many inputs":       {Kind: sessions.Add, Add: []int{1}, In: make([]string, 100_000)},
		"sub of -1":         {Kind: sessions.Shrink, In: toMain, Sub: -1},
		"sub of many":       {Kind: sessions.Shrink, In: toMain, Sub: 1 << 40},
		"rank -1":           {Kind: sessions.Shrink, In: toMain, Ranks: []int{-1}},
		"ranks twice":       {Kind: sessions.Shrink, In: toMain, Ranks: []int{0, 0}},
		"many ranks":        {Kind: sessions.Shrink, In: toMain, Ranks: make([]int, 1<<20)},
		"size -1":           {Kind: sessions.Replace, In: toMain, Size: -1},
		"a large size":      {Kind: sessions.Replace, In: toMain, Size: 1 << 40},
		"at least -1":       grow(func(r *sessions.Request) { r.Min = -1 }),
		"at least many":     grow(func(r *sessions.Request) { r.Min = 1 << 40 }),
		"at most -1":        grow(func(r *sessions.Request) { r.Max = -1 }),
		"at most many":      grow(func(r *sessions.Request) { r.Max = 1 << 40 }),
		"crossed bounds":    grow(func(r *sessions.Request) { r.Min, r.Max = 4, 3 }),
		"preferably -1":     grow(func(r *sessions.Request) { r.Max, r.Pref = 4, -1 }),
		"preferred alone":   grow(func(r *sessions.Request) { r.Pref = 2 }),
		"a size of 0":       grow(func(r *sessions.Request) { r.Sizes = []int{0} }),
		"a size of many":    grow(func(r *sessions.Request) { r.Sizes = []int{2, 1 << 40} }),
		"many sizes":        grow(func(r *sessions.Request) { r.Sizes = make([]int, 1<<20) }),
		"bounds of less":    {Kind: sessions.Shrink, In: toMain, Sub: 1, Min: 1},
		"a bounded part":    {Kind: sessions.Multi, Parts: []sessions.Request{grow(func(r *sessions.Request) { r.Min = 1 })}},
		"a long name":       grow(func(r *sessions.Request) { r.Names = []string{long} }),
		"many names":        grow(func(r *sessions.Request) { r.Names = make([]string, 1<<20) }),
		"a long host":       grow(func(r *sessions.Request) { r.Hosts = []string{long} }),
		"many hosts":        grow(func(r *sessions.Request) { r.Hosts = make([]string, 1<<20) }),
		"a long input":      grow(func(r *sessions.Request) { r.In = []string{long} }),
		"many words":        grow(func(r *sessions.Request) { r.Command = make([]string, 1<<20) }),
		"a long word":       grow(func(r *sessions.Request) { r.Command = []string{strings.Repeat("x", 1<<24)} }),
		"a large col":       grow(func(r *sessions.Request) { r.COL = make([]byte, 1<<24) }),
		"a deadline":        grow(func(r *sessions.Request) { r.Deadlines.Ready = -time.Second }),
		"another":           grow(func(r *sessions.Request) { r.Deadlines.Whole = -1 }),
	} {
		t.Run(what, func(t *testing.T) {
			mpitest.Run(t, 1, func(t *mpitest.T, world *mpi.Comm) {
				w, err := sessions.Watch(t.Context(), "gompi://main", sessions.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				op, err := sessions.Submit(t.Context(), r)
				var e *mpi.Error
				if op != nil || !errors.As(err, &e) || !errors.Is(err, mpi.ErrRefused) {
					t.Errorf("%v: %v", what, err)
				}
				if _, err := sessions.Joined(t.Context()); err != nil {
					t.Error(err)
				}
				s := open(t)
				defer s.Close()
				if _, err := s.PSets(); err != nil {
					t.Errorf("after it: %v", err)
				}
			})
		})
	}
}
