// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"

	"gompi/internal/wire"
	"gompi/transport"
)

// frameSync serves the frames of synchronisation.
func (s *Space) frameSync(_ wire.ProcID, kind byte, _ []byte) error {
	return fmt.Errorf("%w: frame of kind %d", transport.ErrProtocol, kind)
}
