// SPDX-License-Identifier: Apache-2.0

// Package tuning holds the protocol thresholds of the shared-memory transport: the message
// lengths from which it uses another way to copy. There is one set for peers that share a
// cache with this process (near) and one for others (far). The built-in Table is the best one
// on the machines of docs/results/shm.md. `gompibench tune shm` measures a
// machine, and gompirun --shm-table reads the result.
package tuning

import (
	"fmt"
	"strconv"
	"strings"
)

// Table has the thresholds for near and for far peers.
type Table struct{ Near, Far Thresholds }

// Thresholds are lengths in bytes.
type Thresholds struct {
	// Answer and Stream are the least lengths of payloads that are written with non-temporal
	// stores in a streaming ring: Answer for payloads that answer a message, Stream for
	// others. 0 means that none are.
	Answer, Stream int
	// Push is the length up to which a transfer is pushed: its data follow the offer without
	// a request.
	Push int
	// Alone is the length up to which the receiver alone copies a transfer that is not
	// pushed. Of longer ones both sides copy a part.
	Alone int
}

// MaxThreshold is the largest threshold.
const MaxThreshold = 16 << 20

// Default is the built-in table.
func Default() Table {
	return Table{
		Near: Thresholds{Answer: 0, Stream: 0, Push: 80 << 10, Alone: 8 << 10},
		Far:  Thresholds{Answer: 384, Stream: 512, Push: 40 << 10, Alone: 8 << 10},
	}
}

// Smallest returns the least length of a payload for which the distance matters, or 0 if it
// never matters.
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

// entries returns the thresholds of a table with their names in the text form.
func (t *Table) entries() []entry {
	var list []entry
	for _, d := range [...]struct {
		name string
		l    *Thresholds
	}{{"near", &t.Near}, {"far", &t.Far}} {
		list = append(list,
			entry{d.name, "answer", &d.l.Answer},
			entry{d.name, "stream", &d.l.Stream},
			entry{d.name, "push", &d.l.Push},
			entry{d.name, "alone", &d.l.Alone})
	}
	return list
}

// entry is one threshold of a table.
type entry struct {
	distance, way string
	n             *int
}

// Parse reads a table as text. Each line is DISTANCE WAY BYTES; text after # is a comment. A
// threshold without a line has its value in Default. Errors name the line.
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
	return fmt.Errorf("%s %s is not a threshold: the distances are near and far, the ways answer, stream, push and alone", words[0], words[1])
}

// String returns the table in the form that Parse reads.
func (t Table) String() string {
	var b strings.Builder
	for _, f := range t.entries() {
		fmt.Fprintf(&b, "%s %s %d\n", f.distance, f.way, *f.n)
	}
	return b.String()
}
