// SPDX-License-Identifier: Apache-2.0

// Package fault describes why an operation failed. A Fault holds the Class of
// the error and its details; all layers below the public packages return it. The
// package also has the one table of error classes and the type for names of calls.
package fault

// Fault describes why an operation failed; nil is success. It is immutable.
type Fault struct {
	Class     Class
	Got, Want int64 // sizes in bytes, for classes such as Truncate and Count
	Peer      int32 // rank, or -1
	Local     bool  // Peer is a rank of the local group of an intercommunicator
	Err       error // cause, may be nil
}

// Code returns the class of f, or OK if f is nil.
func (f *Fault) Code() Class {
	if f == nil {
		return OK
	}
	return f.Class
}

// OfPeer reports whether f says that a peer has ended or cannot be reached.
// Messages that the peer sent before are still delivered.
func (f *Fault) OfPeer() bool {
	return f.Class == ProcFailed || f.Class == Left || f.Class == Unreachable
}
