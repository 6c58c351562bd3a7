// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"fmt"
	"strings"

	"gompi/transport"
	"gompi/transport/tuning"
)

// transferCounts counts transfers from a peer by their path.
type transferCounts struct{ pushed, both, alone, pieces int }

func (n *transferCounts) add(b *bulk) {
	switch b.how {
	case awaited:
		n.pushed++
	case shared:
		n.both++
	case pieces:
		n.pieces++
	default:
		n.alone++
	}
}

// SetThresholds implements transport.Tunable.
func (t *Transport) SetThresholds(w tuning.Table) {
	t.thresholds, t.thresholdsFixed = w, true
	for _, c := range t.conns {
		if c != nil {
			c.out.setThresholds(w)
		}
	}
}

// Describe implements transport.Describer.
func (t *Transport) Describe(s transport.Slot) string {
	c := t.conn(s)
	if c == nil || c.out.box == nil {
		return ""
	}
	var b strings.Builder
	near, far := c.out.distance.Counts()
	switch {
	case near+far == 0:
		b.WriteString("distance not asked for")
	case c.out.distance.Far():
		fmt.Fprintf(&b, "far now, near in %d of %d looks", near, near+far)
	default:
		fmt.Fprintf(&b, "near now, far in %d of %d looks", far, near+far)
	}
	l := c.out.limits()
	fmt.Fprintf(&b, "; past the cache from %s on, in a stream %s; pushed up to %d bytes", from(l.Answer), from(l.Stream), l.Push)
	if c.out.streaming {
		fmt.Fprintf(&b, "; streaming ring of %d KiB", len(c.out.data)>>10)
		if c.out.residency.evicted {
			b.WriteString(", which does not stay in the cache")
		}
	}
	if l := c.out.choices; l != nil {
		for i, x := range l {
			if x.push == x.guess {
				continue
			}
			how := "copied by both"
			if x.push {
				how = "pushed"
			}
			fmt.Fprintf(&b, "; of up to %d KiB better %s", 1<<(choiceLeast-10+i), how)
		}
	}
	if n := c.received; n != (transferCounts{}) {
		fmt.Fprintf(&b, "; transfers from there: %d pushed, %d copied by both, %d by this side alone, %d in pieces", n.pushed, n.both, n.alone, n.pieces)
	}
	return b.String()
}

func from(n int) string {
	if n == 0 {
		return "no length"
	}
	return fmt.Sprintf("%d bytes", n)
}
