// SPDX-License-Identifier: Apache-2.0

package wait

import "time"

// SecondLook is how long after the first a sleeper looks once more for what
// Publish may have hidden from it. A processor keeps a store to itself for less
// than microseconds.
const RecheckDelay = 2 * time.Millisecond
