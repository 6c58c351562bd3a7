// SPDX-License-Identifier: Apache-2.0

// Package settings knows which values the settings of the runtime may have. A Range
// is a number, a Choice one or several of some names. gompirun checks its settings
// before it starts anything. The owner of a setting checks it again when it reads it,
// because a value may come from the environment and bypass gompirun.
package settings

import (
	"fmt"
	"math"
	"strconv"
)

// Range is a setting that is a whole number from Min to Max.
type Range struct {
	Env      string // variable of the environment
	Min, Max int64
	Unit     string // for messages
}

// Bounds that follow from layouts in memory and on the wire.
const (
	CreditUnit  = 64 // bytes; credit is counted in such units, in 31 bits
	MaxRing     = 16 << 20
	MinTCPEager = 64 // an eager message must hold the descriptor of a transfer
	MaxTCPEager = 64 << 10
	MinTCPChunk = 4 << 10
	MaxTCPChunk = 4 << 20
)

// The settings that are numbers.
var (
	Eager = Range{
		Env:  "GOMPI_EAGER",
		Min:  -1,
		Max:  1 << 40,
		Unit: "bytes",
	}
	Credit = Range{
		Env:  "GOMPI_CREDIT",
		Min:  4 * CreditUnit,
		Max:  CreditUnit << 30,
		Unit: "bytes",
	}
	Budget = Range{
		Env:  "GOMPI_BUDGET",
		Min:  1,
		Max:  1 << 50,
		Unit: "bytes",
	}
	Ring = Range{
		Env:  "GOMPI_RING",
		Min:  1,
		Max:  MaxRing,
		Unit: "bytes",
	}
	TCPEager = Range{
		Env:  "GOMPI_TCP_EAGER",
		Min:  MinTCPEager,
		Max:  MaxTCPEager,
		Unit: "bytes",
	}
	TCPChunk = Range{
		Env:  "GOMPI_TCP_CHUNK",
		Min:  MinTCPChunk,
		Max:  MaxTCPChunk,
		Unit: "bytes",
	}
	Spin = Range{
		Env:  "GOMPI_SPIN",
		Min:  0,
		Max:  math.MaxInt32,
		Unit: "turns",
	}
	// HostsPretend is for tests: so many successive processes pretend to share a host.
	HostsPretend = Range{
		Env:  "GOMPI_HOSTS_PRETEND",
		Min:  0,
		Max:  math.MaxInt32,
		Unit: "processes",
	}
)

// Parse reads a value. The error does not name the setting.
func (r Range) Parse(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < r.Min || n > r.Max {
		return 0, fmt.Errorf("%q is not a number of %s from %d to %d", text, r.Unit, r.Min, r.Max)
	}
	return n, nil
}

// Lookup reads the value that setting returns for the variable. It returns unset if
// setting is nil or returns an empty text.
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
