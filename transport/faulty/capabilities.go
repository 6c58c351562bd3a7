// SPDX-License-Identifier: Apache-2.0

package faulty

import (
	"gompi/internal/base/wire"
	"gompi/transport"
)

// withCapabilities returns the wrapper with the optional capabilities of the transport below.
// FastBoxes, Oversubscriber, Checker and Collector are always there, because their contracts allow
// a transport to do nothing.
func (t *wrapper) withCapabilities() transport.Transport {
	r, reserves := t.Transport.(transport.Reserver)
	s, shares := t.Transport.(transport.Sharer)
	c, copies := t.Transport.(transport.SingleCopy)
	reserve, share, single := reserver{r, t}, sharer{s, t}, singleCopy{c, t}
	switch {
	case reserves && shares && copies:
		return struct {
			*wrapper
			reserver
			sharer
			singleCopy
		}{t, reserve, share, single}
	case reserves && shares:
		return struct {
			*wrapper
			reserver
			sharer
		}{t, reserve, share}
	case reserves && copies:
		return struct {
			*wrapper
			reserver
			singleCopy
		}{t, reserve, single}
	case shares && copies:
		return struct {
			*wrapper
			sharer
			singleCopy
		}{t, share, single}
	case reserves:
		return struct {
			*wrapper
			reserver
		}{t, reserve}
	case shares:
		return struct {
			*wrapper
			sharer
		}{t, share}
	case copies:
		return struct {
			*wrapper
			singleCopy
		}{t, single}
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
