// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"fmt"
	"strings"
	"time"

	"gompi/mam"
)

// Options say how Run measures. They must be equal on all ranks, and on those that come.
type Options struct {
	// From and To are the numbers of ranks; they differ.
	From, To int
	// Bytes of the data in all, rounded down to elements of 8 bytes.
	Bytes int64
	// Variants take turns in each round; nil: all that there are.
	Variants []Variant
	// Rounds is how often each is measured; 0 means DefaultRounds.
	Rounds int
	// Iteration is how long one takes on From ranks; 0 means DefaultIteration.
	Iteration time.Duration
	// Transport is the name that results carry; "": that of the transport.
	Transport string
	// Progress, on rank 0, hears before each change how many are done, of how many, and
	// which is next; nil: nobody does.
	Progress func(done, all int, next string)
	// Note, on rank 0, hears which variants are not measured, and why; nil: nobody does.
	Note func(text string)
}

const (
	// DefaultRounds is what Rounds 0 means.
	DefaultRounds = 20
	// DefaultIteration is what Iteration 0 means.
	DefaultIteration = 10 * time.Millisecond

	elemBytes = 8
	mostRanks = 1 << 12 // of one host
)

// Variant is what a redistribution is done by.
type Variant struct {
	Method   mam.Method
	Strategy mam.Strategy
}

// String gives the names that settings have.
func (v Variant) String() string { return v.Method.String() + "-" + v.Strategy.String() }

// Variants are all pairs of methods and strategies, by the names that settings have,
// separated by commas; "all" is each of them.
func Variants(methods, strategies string) ([]Variant, error) {
	m, err := named("method", methods, mam.COL, mam.InPlace)
	if err != nil {
		return nil, err
	}
	s, err := named("strategy", strategies, mam.Blocking, mam.WaitDrains)
	if err != nil {
		return nil, err
	}
	var list []Variant
	for _, method := range m {
		for _, strategy := range s {
			list = append(list, Variant{method, strategy})
		}
	}
	return list, nil
}

// named are the values with these names, each once.
func named[T interface {
	~uint8
	String() string
}](what, names string, first, last T) ([]T, error) {
	var list []T
	taken := map[T]bool{}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		found := name == "all"
		for v := first; v <= last; v++ {
			if name != "all" && name != v.String() {
				continue
			}
			if found = true; !taken[v] {
				taken[v] = true
				list = append(list, v)
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no %s %q", what, name)
		}
	}
	return list, nil
}

func (o *Options) validate() error {
	switch {
	case o.From < 1 || o.To < 1 || o.From > mostRanks || o.To > mostRanks || o.From == o.To:
		return fmt.Errorf("redist: from %d to %d ranks: both 1 to %d, and not the same", o.From, o.To, mostRanks)
	case o.Bytes < elemBytes:
		return fmt.Errorf("redist: %d bytes, at least %d", o.Bytes, elemBytes)
	case o.Rounds < 0 || o.Iteration < 0:
		return fmt.Errorf("redist: %d rounds, iterations of %v", o.Rounds, o.Iteration)
	}
	if o.Rounds == 0 {
		o.Rounds = DefaultRounds
	}
	if o.Iteration == 0 {
		o.Iteration = DefaultIteration
	}
	if o.Variants == nil {
		o.Variants, _ = Variants("all", "all")
	}
	return nil
}

func (o *Options) elems() int { return int(o.Bytes / elemBytes) }
