// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 || race

package remote

// end ends a visit.
func (v *visit) end() { v.who.Store(0) }
