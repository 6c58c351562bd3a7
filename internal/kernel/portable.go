// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package kernel

// vectors is empty: the loops are all there is.
var vectors table
