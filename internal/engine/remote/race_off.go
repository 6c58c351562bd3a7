// SPDX-License-Identifier: Apache-2.0

//go:build !race

package remote

// meet is for the race detector; see race_on.go.
func (s *Space) meet() {}
