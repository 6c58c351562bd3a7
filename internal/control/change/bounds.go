// SPDX-License-Identifier: Apache-2.0

package change

import "slices"

// MaxSizes bounds Request.Sizes.
const MaxSizes = 1 << 10

// bounded reports whether a request may be granted with fewer processes than it asks for.
func (r *Request) bounded() bool { return r.Min != 0 || r.Max != 0 || r.Pref != 0 || len(r.Sizes) > 0 }

// checkBounds checks the bounds of a request against its other fields.
func (r *Request) checkBounds() error {
	switch {
	case !r.bounded():
		return nil
	case r.Kind != Add && r.Kind != Grow && r.Kind != Replace:
		return malformed("%v with bounds", r.Kind)
	case r.To == 0 && len(r.Join) != 1:
		return malformed("%v with bounds, of %d sets of newcomers", r.Kind, len(r.Join))
	case r.Min < 0 || r.Max < 0 || r.Pref < 0 || r.Max != 0 && r.Min > r.Max:
		return malformed("%v of %d to %d processes, preferably %d", r.Kind, r.Min, r.Max, r.Pref)
	case r.Min == 0 && r.Max == 0 && len(r.Sizes) == 0:
		return malformed("%v of preferably %d processes, without bounds", r.Kind, r.Pref)
	case len(r.Sizes) > MaxSizes:
		return malformed("%d sizes, at most %d allowed", len(r.Sizes), MaxSizes)
	case slices.ContainsFunc(r.Sizes, func(n int) bool { return n < 1 }):
		return malformed("%v to one of %v processes", r.Kind, r.Sizes)
	}
	for _, n := range []int{r.To, r.Pref} {
		if n != 0 && !r.allows(n) {
			return malformed("%v to %d processes: %d to %d and %v allowed", r.Kind, n, r.Min, r.Max, r.Sizes)
		}
	}
	return nil
}

// allows reports whether the bounds allow this size.
func (r *Request) allows(size int) bool {
	return size >= r.Min && (r.Max == 0 || size <= r.Max) && (len(r.Sizes) == 0 || slices.Contains(r.Sizes, size))
}

// best returns how many newcomers come if there is room for room of them. rest processes are there
// already, and wish is the wanted number. best returns wish if possible, otherwise the number that
// makes the preferred size, otherwise the largest allowed number; 0 if no number is allowed.
func (r *Request) best(rest, wish, room int) int {
	most := rest + min(wish, room)
	switch {
	case wish <= room && r.allows(rest+wish):
		return wish
	case rest < r.Pref && r.Pref <= most:
		return r.Pref - rest
	}
	if r.Max != 0 {
		most = min(most, r.Max)
	}
	if len(r.Sizes) > 0 {
		largest := 0
		for _, n := range r.Sizes {
			if n <= most && n >= r.Min {
				largest = max(largest, n)
			}
		}
		most = largest
	}
	if most < r.Min {
		return 0
	}
	return max(0, most-rest)
}

// minJoin returns the least allowed number of newcomers, when rest processes are there.
func (r *Request) minJoin(rest int) int {
	least := max(r.Min, rest+1)
	if len(r.Sizes) > 0 {
		found := 0
		for _, n := range r.Sizes {
			if n >= least && (found == 0 || n < found) {
				found = n
			}
		}
		least = max(least, found)
	}
	return least - rest
}

// fitToRoom reduces the newcomers of a bounded request to the available room. living is the
// number of living processes. It returns false if there is too little room now, and an error if
// there never will be enough.
func (b *Book) fitToRoom(o *operation, p *opPart, living int) (bool, error) {
	r := &o.req.parts()[0]
	rest := len(p.rest)
	if r.Kind == Add {
		rest = 0 // the newcomers form a set of their own
	}
	wish := len(p.join[0])
	free, ever := b.owner.RoomOn(r.On)
	if r.best(rest, wish, min(ever, b.owner.Most()-living)) == 0 {
		switch least := max(r.Min-rest, 1); {
		case living+least > b.owner.Most():
			return false, tooMany(living+least, b.owner.Most())
		case least > ever:
			return false, tooMany(least, ever)
		}
		return false, malformed("%v of %d by %d: no allowed size (%d to %d, %v)", r.Kind, rest, wish, r.Min, r.Max, r.Sizes)
	}
	n := r.best(rest, wish, min(free, b.owner.Room()))
	if n == 0 && r.best(rest, wish, free) > 0 {
		o.wants = min(wish, b.owner.Most()-living)
		o.least = min(r.minJoin(rest), o.wants)
	}
	if n == 0 || r.Kind != Add && b.owner.Fits(p.in[0], rest+n) != nil {
		return false, nil
	}
	p.join[0] = p.join[0][:n]
	return true, nil
}
