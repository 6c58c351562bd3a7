// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"iter"
	"slices"
)

// Info is an ordered list of keys with values: hints to the library, which
// ignores those that it does not know. A nil *Info is empty and can be read.
// It is not safe for concurrent changes. MPI 4.1 chapter 10.
type Info struct{ pairs []infoPair }

type infoPair struct{ key, value string }

// NewInfo makes an Info of keys and values in turn. An odd number of strings
// panics.
func NewInfo(keysAndValues ...string) *Info {
	if len(keysAndValues)%2 != 0 {
		panic("gompi: NewInfo: a key has no value")
	}
	i := new(Info)
	for kv := range slices.Chunk(keysAndValues, 2) {
		i.Set(kv[0], kv[1])
	}
	return i
}

// Set gives a key a value. A new key becomes the last.
func (i *Info) Set(key, value string) {
	if k := i.find(key); k >= 0 {
		i.pairs[k].value = value
		return
	}
	i.pairs = append(i.pairs, infoPair{key, value})
}

// Get returns the value of a key, "" if there is none.
func (i *Info) Get(key string) string {
	v, _ := i.Lookup(key)
	return v
}

// Lookup returns the value of a key and whether there is one.
func (i *Info) Lookup(key string) (value string, ok bool) {
	if k := i.find(key); k >= 0 {
		return i.pairs[k].value, true
	}
	return "", false
}

// Delete removes a key and reports whether it was there.
func (i *Info) Delete(key string) bool {
	k := i.find(key)
	if k >= 0 {
		i.pairs = slices.Delete(i.pairs, k, k+1)
	}
	return k >= 0
}

// Len is the number of keys.
func (i *Info) Len() int {
	if i == nil {
		return 0
	}
	return len(i.pairs)
}

// All iterates over keys and values in the order in which the keys were set.
func (i *Info) All() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for k := range i.Len() {
			if p := i.pairs[k]; !yield(p.key, p.value) {
				return
			}
		}
	}
}

// Dup returns a copy.
func (i *Info) Dup() *Info {
	d := new(Info)
	if i != nil {
		d.pairs = slices.Clone(i.pairs)
	}
	return d
}

func (i *Info) find(key string) int {
	if i == nil {
		return -1
	}
	return slices.IndexFunc(i.pairs, func(p infoPair) bool { return p.key == key })
}
