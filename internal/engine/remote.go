// SPDX-License-Identifier: Apache-2.0

package engine

import "gompi/internal/wire"

// RemoteServer is what stands above the engine for remote memory: it serves
// frames of other processes. Its methods are called with the lock held and
// must not block. docs/design/014-remote-memory.md.
type RemoteServer interface {
	// Frame serves a frame of another process; b is valid during the call and
	// is not trusted. An error means that the peer broke the protocol.
	Frame(from wire.ProcID, b []byte) error

	// Down tells that no frame comes from p, or reaches it, any more.
	Down(p wire.ProcID, f *Fault)
}
