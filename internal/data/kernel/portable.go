// SPDX-License-Identifier: Apache-2.0

//go:build race || (!amd64 && !arm64)

package kernel

// vectors is empty: there are only the loops in Go. The race detector does not see memory
// that assembly touches.
var vectors table
