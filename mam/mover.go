// SPDX-License-Identifier: Apache-2.0

package mam

import "context"

// A mover moves the data of a reconfiguration by one method. The plan makes it, once, from
// the table of methods. The schedule makes these calls, in this order:
//
//	ready    a newcomer, before its Ready       background strategies only
//	early    a newcomer, after its Ready;       background strategies only
//	         a source, before its Release
//	finish   all, in the Checkpoint that got    constant data, then variable data
//	         the change
//	close    all, after the decision
//
// After ready or early constant data is done on all members. Arrays in host memory (inPlace)
// and encoded values (transferEncoded) are no business of a mover: they are done before
// finish is called.
type mover interface {
	// ready moves what a newcomer can fetch without any source.
	ready(ctx context.Context) error
	// early moves constant data, and pre-copies variable data, while the sources compute.
	// It ends with ctx. After an error nothing of it is under way on this process.
	early(ctx context.Context) error
	// finish moves data that is not done, and marks it done. All call it with the same list,
	// over the merged communicator.
	finish(list []*transfer) error
	// close releases what the mover holds. It may be called twice.
	close()
}

// method is a row of the table of redistribution methods.
type method struct {
	mover    func(*reconfiguration) mover
	carrier  Method // moves the data that this method cannot; Auto: it moves all data itself
	exposes  bool   // sources expose constant data at the first Checkpoint of a set
	requests bool   // it has strategy NonBlocking; without, that becomes WaitDrains
	windows  bool   // it makes windows over the merged communicator
}

// methods is the table of redistribution methods, by their values.
var methods = [...]method{
	COL:        {mover: newCollective, requests: true},
	P2P:        {mover: newPointToPoint, requests: true},
	RMALock:    {mover: newLockWindows, windows: true},
	RMALockall: {mover: newLockAllWindows, windows: true},
	Pull:       {mover: newPull, exposes: true},
	InPlace:    {mover: newPull, exposes: true, carrier: Pull},
}

// mayExpose reports whether a change may read constant data before it is delivered. It is
// asked at the publication, before any plan.
func (c *Config) mayExpose() bool {
	return (c.Method == Auto || methods[c.Method].exposes) && (c.Strategy == Auto || schedules[c.Strategy].background)
}
