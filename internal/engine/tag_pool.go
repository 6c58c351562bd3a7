// SPDX-License-Identifier: Apache-2.0

package engine

import "slices"

// tagPool has the tags of partitions that senders of this process use on a context. It
// reuses a tag after its operation was freed, and as late as possible: the receiver may
// have yet to start its own.
type tagPool struct {
	next uint32     // where the search for free tags begins
	used []tagRange // sorted by their first tags
}

type tagRange struct{ from, to uint32 } // to is the first tag after the range

const maxPartitionTag = 1 << 31

// take allocates n consecutive tags. n is above 0.
func (t *tagPool) take(n uint32) (from uint32, ok bool) {
	begin := t.next
	if from, ok = t.fit(begin, maxPartitionTag, n); !ok {
		if from, ok = t.fit(0, maxPartitionTag, n); !ok {
			return 0, false
		}
	}
	i, _ := t.find(from)
	t.used = slices.Insert(t.used, i, tagRange{from, from + n})
	t.next = from + n
	return from, true
}

// fit looks for n free tags in a range.
func (t *tagPool) fit(from, to, n uint32) (uint32, bool) {
	i, _ := t.find(from)
	if i > 0 {
		from = max(from, t.used[i-1].to)
	}
	for ; i < len(t.used); i++ {
		if t.used[i].from-from >= n {
			return from, true
		}
		from = t.used[i].to
	}
	return from, from <= to && to-from >= n
}

func (t *tagPool) find(from uint32) (i int, found bool) {
	return slices.BinarySearchFunc(t.used, from, func(r tagRange, from uint32) int {
		switch {
		case r.from < from:
			return -1
		case r.from > from:
			return 1
		}
		return 0
	})
}

// free returns the tags of take.
func (t *tagPool) free(from uint32) {
	if i, ok := t.find(from); ok {
		t.used = slices.Delete(t.used, i, i+1)
	}
}
