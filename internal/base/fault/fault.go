// SPDX-License-Identifier: Apache-2.0

// Package fault is why an operation failed, as all layers below the public
// packages say it, and the one table of the classes of errors.
package fault

// Fault is why an operation failed; nil is success. It is immutable.
type Fault struct {
	Class     Class
	Got, Want int64 // bytes, where they say something
	Peer      int32 // rank, or -1
	Local     bool  // Peer is a rank of the local group of an intercommunicator
	Err       error // cause, may be nil
}

// Code is the class, OK of nil.
func (f *Fault) Code() Class {
	if f == nil {
		return OK
	}
	return f.Class
}

// OfPeer reports whether f is that a peer has ended, or cannot be reached: what
// it had sent before is still delivered.
func (f *Fault) OfPeer() bool {
	return f.Class == ProcFailed || f.Class == Left || f.Class == Unreachable
}
