// SPDX-License-Identifier: Apache-2.0

package wait

import "time"

// RecheckDelay is the time after which a sleeper looks again for a store that Publish may
// have delayed. A processor delays a store by less than a few microseconds.
const RecheckDelay = 2 * time.Millisecond
