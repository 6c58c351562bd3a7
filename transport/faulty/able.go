// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"gompi/internal/base/wire"
	"gompi/transport"
)

// able is the wrapper with the capabilities of the transport below. FastBoxes,
// Oversubscriber, Checker and Collector need none below: their contract allows to do nothing.
func (t *wrapper) withCapabilities() transport.Transport {
	place, places := t.Transport.(transport.Reserver)
	share, shares := t.Transport.(transport.Sharer)
	copies, singly := t.Transport.(transport.SingleCopy)
	p, s, x := reserver{place, t}, sharer{share, t}, singleCopy{copies, t}
	switch {
	case places && shares && singly:
		return struct {
			*wrapper
			reserver
			sharer
			singleCopy
		}{t, p, s, x}
	case places && shares:
		return struct {
			*wrapper
			reserver
			sharer
		}{t, p, s}
	case places && singly:
		return struct {
			*wrapper
			reserver
			singleCopy
		}{t, p, x}
	case shares && singly:
		return struct {
			*wrapper
			sharer
			singleCopy
		}{t, s, x}
	case places:
		return struct {
			*wrapper
			reserver
		}{t, p}
	case shares:
		return struct {
			*wrapper
			sharer
		}{t, s}
	case singly:
		return struct {
			*wrapper
			singleCopy
		}{t, x}
	}
	return t
}

var (
	_ transport.Transport      = (*wrapper)(nil)
	_ transport.FastBoxes      = (*wrapper)(nil)
	_ transport.Oversubscriber = (*wrapper)(nil)
	_ transport.Checker        = (*wrapper)(nil)
	_ transport.Collector      = (*wrapper)(nil)
	_ transport.Reserver       = reserver{}
	_ transport.Sharer         = sharer{}
	_ transport.SingleCopy     = singleCopy{}
	_ transport.Direct         = direct{}
)

// Oversubscribed implements transport.Oversubscriber.
func (t *wrapper) Oversubscribed(yes bool) {
	if c, ok := t.Transport.(transport.Oversubscriber); ok {
		c.Oversubscribed(yes)
	}
}

// Check implements transport.Checker.
func (t *wrapper) Check() {
	if c, ok := t.Transport.(transport.Checker); ok {
		c.Check()
	}
}

// Collect implements transport.Collector.
func (t *wrapper) Collect(proc wire.ProcID) {
	if c, ok := t.Transport.(transport.Collector); ok {
		c.Collect(proc)
	}
}
