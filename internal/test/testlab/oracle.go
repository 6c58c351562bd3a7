// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"cmp"
	"fmt"
	"slices"
)

// Result is what one rank got out of one receive, collective or withdrawal.
type Result struct {
	ID    int // of the event
	Index int // of the receive in a Group, in the order of posting, or of the collective in a Starts; else 0
	// Source, Tag and Bytes are the status of a receive; Bytes of a collective
	// is the length of the result buffer.
	Source, Tag int
	Bytes       int64
	Sum         uint64 // of what lies in the buffer
	// Message is the id with which the payload of a group's message begins.
	Message uint64
	// Outcome is "" or says what else happened: OutTruncated, OutWithdrawn.
	Outcome string
}

// What a receive may report besides a message.
const (
	OutTruncated = "truncated"
	OutWithdrawn = "withdrawn"
)

// Expect predicts the results of a rank, without those of groups.
func Expect(p *Program, rank int) []Result {
	var out []Result
	for i := range p.Events {
		out = append(out, expect(p, &p.Events[i], rank)...)
	}
	return out
}

// expect predicts the results of one event that is no Group.
func expect(p *Program, e *Event, rank int) []Result {
	r := Result{ID: e.ID}
	if !p.Participates(e, rank) {
		return nil
	}
	switch {
	case e.Kind == Message && rank == e.To:
		b := Payload(p.Seed, MessageID(e.ID, 0), e.Bytes)
		r.Source, r.Tag = e.From, e.Tag
		if e.Short > 0 {
			b, r.Outcome = b[:e.Bytes-e.Short], OutTruncated
		}
		r.Bytes, r.Sum = int64(len(b)), Sum(b)
		return []Result{r}
	case e.Kind == Exchange:
		k := slices.Index(e.Ring, rank)
		from := (k + len(e.Ring) - 1) % len(e.Ring)
		r.Source, r.Tag, r.Bytes = e.Ring[from], e.Tag, int64(e.Bytes)
		r.Sum = Sum(Payload(p.Seed, MessageID(e.ID, e.Ring[from]), e.Bytes))
		return []Result{r}
	case e.Kind == Withdraw:
		r.Outcome = OutWithdrawn
		return []Result{r}
	case e.Kind == Collective && e.Form != Persistent:
		return []Result{p.called(e, e, 0, rank)}
	case e.Kind == Starts:
		var out []Result
		for k := range e.Of {
			if call := p.Call(e, k); p.Participates(call, rank) {
				out = append(out, p.called(e, call, k, rank))
			}
		}
		return out
	}
	return nil
}

// called is the result of entry k of e, which calls the collective call.
func (p *Program) called(e, call *Event, k, rank int) Result {
	pl, _ := p.Layout(call.Comm).Place(rank)
	b := p.CollResult(call, CallKey(e, k), pl)
	return Result{ID: e.ID, Index: k, Bytes: int64(len(b)), Sum: Sum(b)}
}

// Check compares what a rank got with what it should have got. Messages of a
// Group may come in any order that keeps the order of each sender.
func Check(p *Program, rank int, got []Result) error {
	events := map[int]*Event{}
	for i := range p.Events {
		events[p.Events[i].ID] = &p.Events[i]
	}
	bags := map[int][]Result{} // by event, or Wild
	type slot struct{ id, index int }
	single := map[slot]Result{}
	for _, r := range got {
		e := events[r.ID]
		switch {
		case e == nil:
			return fmt.Errorf("rank %d: result of event %d, which is not there", rank, r.ID)
		case e.Kind == Group:
			bags[bagOf(e)] = append(bags[bagOf(e)], r)
		default:
			if _, double := single[slot{r.ID, r.Index}]; double {
				return fmt.Errorf("rank %d: two results of event\n%v", rank, e)
			}
			single[slot{r.ID, r.Index}] = r
		}
	}
	for i := range p.Events {
		e := &p.Events[i]
		for _, want := range expect(p, e, rank) {
			r, has := single[slot{want.ID, want.Index}]
			if !has || r != want {
				return fmt.Errorf("rank %d: event\n%v\ngot  %+v\nwant %+v", rank, e, r, want)
			}
			delete(single, slot{want.ID, want.Index})
		}
	}
	for _, r := range single {
		return fmt.Errorf("rank %d: a result that should not be there: %+v of\n%v", rank, r, events[r.ID])
	}
	return checkBags(p, rank, bags)
}

// bagOf names the receives among which messages are free to choose.
func bagOf(e *Event) int {
	if e.Comm == Wild {
		return Wild
	}
	return e.ID
}

func checkBags(p *Program, rank int, bags map[int][]Result) error {
	want := map[int]map[int][]Result{} // bag, source: in the order of sending
	total := map[int]int{}
	for i := range p.Events {
		e := &p.Events[i]
		if e.Kind != Group || e.To != rank {
			continue
		}
		for k, part := range e.Parts {
			bag := bagOf(e)
			if want[bag] == nil {
				want[bag] = map[int][]Result{}
			}
			id := MessageID(e.ID, k)
			want[bag][part.From] = append(want[bag][part.From], Result{
				Source: part.From, Tag: e.Tag, Bytes: int64(part.Bytes), Message: id, Sum: Sum(Payload(p.Seed, id, part.Bytes)),
			})
			total[bag]++
		}
	}
	for bag, rs := range bags {
		slices.SortFunc(rs, func(a, b Result) int { return cmp.Or(a.ID-b.ID, a.Index-b.Index) })
		for _, r := range rs {
			next := want[bag][r.Source]
			if len(next) == 0 {
				return fmt.Errorf("rank %d: one message too many from rank %d: %+v", rank, r.Source, r)
			}
			w := next[0]
			w.ID, w.Index = r.ID, r.Index
			if w != r {
				return fmt.Errorf("rank %d: from any source\ngot  %+v\nwant %+v, the next of rank %d", rank, r, w, r.Source)
			}
			want[bag][r.Source] = next[1:]
			total[bag]--
		}
	}
	for bag, n := range total {
		if n != 0 {
			return fmt.Errorf("rank %d: %d messages of group %d are missing", rank, n, bag)
		}
	}
	return nil
}
