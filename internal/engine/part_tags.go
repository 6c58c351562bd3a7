// SPDX-License-Identifier: Apache-2.0

package engine

import "slices"

// partTags are the tags of partitions that senders of this process use on a context. A tag is
// used again when its operation was freed, and as late as can be: the receiver may have yet to
// start its own.
type partTags struct {
	next uint32     // where the search for room begins
	used []tagRange // by their first tags
}

type tagRange struct{ from, to uint32 } // to is the first behind it

const maxPartTag = 1 << 31

// take gives out n tags that follow each other. n is above 0.
func (t *partTags) take(n uint32) (from uint32, ok bool) {
	begin := t.next
	if from, ok = t.fit(begin, maxPartTag, n); !ok {
		if from, ok = t.fit(0, maxPartTag, n); !ok {
			return 0, false
		}
	}
	i, _ := t.find(from)
	t.used = slices.Insert(t.used, i, tagRange{from, from + n})
	t.next = from + n
	return from, true
}

// fit finds room for n tags between two.
func (t *partTags) fit(from, to, n uint32) (uint32, bool) {
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

func (t *partTags) find(from uint32) (i int, found bool) {
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

// free gives back what take gave.
func (t *partTags) free(from uint32) {
	if i, ok := t.find(from); ok {
		t.used = slices.Delete(t.used, i, i+1)
	}
}
