// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/internal/wire"
	"gompi/transport"
)

type incoming struct{}

// Frame implements engine.RemoteServer.
func (s *Space) Frame(from wire.ProcID, b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: empty frame", transport.ErrProtocol)
	}
	if b[0] >= 16 {
		return s.frameSync(from, b[0], b)
	}
	return fmt.Errorf("%w: frame of kind %d", transport.ErrProtocol, b[0])
}
