// SPDX-License-Identifier: Apache-2.0

// Package calls has what all layers call the library's calls.
package calls

// Name names a call in errors and roll calls: "Recv".
type Name string
