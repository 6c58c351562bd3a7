// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package parallel

import "math"

// otherCPUs are never available here.
type otherCPUs struct{ room int }

func findOtherCPUs() otherCPUs { return otherCPUs{room: math.MaxInt} }

func (otherCPUs) migrate() (undo func()) { return func() {} }
