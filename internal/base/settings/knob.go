// SPDX-License-Identifier: Apache-2.0

// Package knob says which numbers the settings of the runtime may be: gompirun
// asks it before it starts anything, and whoever a setting is for when it reads
// it, as it may have come by another way.
package settings

import (
	"fmt"
	"math"
	"strconv"
)

// Range is a setting that is a whole number.
type Range struct {
	Env      string
	Min, Max int64
	Unit     string
}

// Bounds that are those of layouts in memory and on the wire.
const (
	CreditUnit  = 64 // bytes in which credit is counted, in 31 bits
	MaxRing     = 16 << 20
	MinTCPEager = 64 // a transport takes the descriptor of a transfer
	MaxTCPEager = 64 << 10
	MinTCPChunk = 4 << 10
	MaxTCPChunk = 4 << 20
)

// The settings that are numbers.
var (
	Eager    = Range{"GOMPI_EAGER", -1, 1 << 40, "bytes"}
	Credit   = Range{"GOMPI_CREDIT", 4 * CreditUnit, CreditUnit << 30, "bytes"}
	Budget   = Range{"GOMPI_BUDGET", 1, 1 << 50, "bytes"}
	Ring     = Range{"GOMPI_RING", 1, MaxRing, "bytes"}
	TCPEager = Range{"GOMPI_TCP_EAGER", MinTCPEager, MaxTCPEager, "bytes"}
	TCPChunk = Range{"GOMPI_TCP_CHUNK", MinTCPChunk, MaxTCPChunk, "bytes"}
	Spin     = Range{"GOMPI_SPIN", 0, math.MaxInt32, "turns"}
	// HostsPretend is for tests: see package mpi's hostOf.
	HostsPretend = Range{"GOMPI_HOSTS_PRETEND", 0, math.MaxInt32, "processes"}
)

// Parse reads a value that is set. The error does not name the setting.
func (r Range) Parse(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < r.Min || n > r.Max {
		return 0, fmt.Errorf("%q is not a number of %s from %d to %d", text, r.Unit, r.Min, r.Max)
	}
	return n, nil
}

// Setting is Parse of the value that setting gives for the name; whatever is
// not set is unset. A nil function sets nothing.
func (r Range) Lookup(setting func(name string) string, unset int64) (int64, error) {
	if setting == nil {
		return unset, nil
	}
	text := setting(r.Env)
	if text == "" {
		return unset, nil
	}
	n, err := r.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", r.Env, err)
	}
	return n, nil
}
