// SPDX-License-Identifier: Apache-2.0

// Package ways says how messages of which length go between processes of one host, to a
// processor that shares a cache with this one and to one that does not. The built-in table is
// what was best on the machines in docs/results/shm.md; `gompibench tune shm`
// measures one, and gompirun --shm-table takes it.
package tuning

import (
	"fmt"
	"strconv"
	"strings"
)

// Table has the limits for either distance.
type Table struct{ Near, Far Thresholds }

// Limits are lengths in bytes.
type Thresholds struct {
	// Answer and Stream are from where on payloads that answer a message, and those that do
	// not, are written past the cache, in a ring that is wide; 0: none are.
	Answer, Stream int
	// Push is up to where transfers are pushed: their pieces follow the offer unasked.
	Push int
	// Alone is up to where the receiver copies a transfer that is not pushed alone, at once:
	// beyond, both sides copy.
	Alone int
}

// Most is the largest limit.
const MaxThreshold = 16 << 20

// Default is the built-in table.
func Default() Table {
	return Table{
		Near: Thresholds{Answer: 0, Stream: 0, Push: 80 << 10, Alone: 8 << 10},
		Far:  Thresholds{Answer: 384, Stream: 512, Push: 40 << 10, Alone: 8 << 10},
	}
}

// Least is the shortest payload for which the distance matters; 0: there is none.
func (t *Table) Smallest() (least int) {
	for _, l := range [...]*Thresholds{&t.Near, &t.Far} {
		for _, n := range [...]int{l.Answer, l.Stream} {
			if n > 0 && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}

// fields are the limits of a table by the words of its text.
func (t *Table) entries() []entry {
	var list []entry
	for _, d := range [...]struct {
		name string
		l    *Thresholds
	}{{"near", &t.Near}, {"far", &t.Far}} {
		list = append(list, entry{d.name, "answer", &d.l.Answer}, entry{d.name, "stream", &d.l.Stream}, entry{d.name, "push", &d.l.Push}, entry{d.name, "alone", &d.l.Alone})
	}
	return list
}

type entry struct {
	distance, way string
	n             *int
}

// Parse reads a table as text: lines {distance, way, bytes}, what is left out is as in
// Default. What follows # is a comment. Errors name the line.
func Parse(text string) (Table, error) {
	t := Default()
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := t.set(words); err != nil {
			return Table{}, fmt.Errorf("line %d of the table: %w", number, err)
		}
	}
	return t, nil
}

func (t *Table) set(words []string) error {
	if len(words) != 3 {
		return fmt.Errorf("%d words, not DISTANCE WAY BYTES", len(words))
	}
	for _, f := range t.entries() {
		if f.distance != words[0] || f.way != words[1] {
			continue
		}
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 0 || n > MaxThreshold {
			return fmt.Errorf("%q is not a number of bytes from 0 to %d", words[2], MaxThreshold)
		}
		*f.n = n
		return nil
	}
	return fmt.Errorf("%s %s is no limit: there are near and far, each with answer, stream, push and alone", words[0], words[1])
}

// String is the table as Parse reads it.
func (t Table) String() string {
	var b strings.Builder
	for _, f := range t.entries() {
		fmt.Fprintf(&b, "%s %s %d\n", f.distance, f.way, *f.n)
	}
	return b.String()
}
