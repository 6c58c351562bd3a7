// SPDX-License-Identifier: Apache-2.0

package engine

// unsafe: kernels work on addresses so that one type serves all elements.

import "unsafe"

// Kernel is a reduction: inout[i] = in[i] op inout[i] for n elements. in comes
// from lower ranks. The two do not overlap.
type Kernel func(in, inout unsafe.Pointer, n int64)
