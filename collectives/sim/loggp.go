// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// LogGP are the parameters of one class of links. Times are microseconds; none
// is negative.
type LogGP struct {
	Latency  float64 // L
	Overhead float64 // o, at either end
	Gap      float64 // g, between messages of one rank
	PerByte  float64 // G: microseconds a byte
}

// ParseLogGP reads "L,o,g,G" with L, o and g in microseconds and G in
// nanoseconds a byte: "1.2,0.3,0.3,0.08".
func ParseLogGP(text string) (LogGP, error) {
	fields := strings.Split(text, ",")
	if len(fields) != 4 {
		return LogGP{}, fmt.Errorf("%q: want L,o,g,G: four numbers, not %d", text, len(fields))
	}
	var v [4]float64
	for i, s := range fields {
		x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !possible(x) {
			return LogGP{}, fmt.Errorf("%q: %q is no time", text, s)
		}
		v[i] = x
	}
	return LogGP{v[0], v[1], v[2], v[3] / 1000}, nil
}

// String gives the form that ParseLogGP reads.
func (p LogGP) String() string {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	return strings.Join([]string{text(p.Latency), text(p.Overhead), text(p.Gap), text(p.PerByte * 1000)}, ",")
}

// possible reports whether x can be a time.
func possible(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }

// stream is how long k bytes take to pass after the first.
func (p *LogGP) stream(k int64) float64 { return float64(max(0, k-1)) * p.PerByte }

// Machine is what the virtual ranks run on.
type Machine struct {
	// Net are the links between nodes, Node those inside one.
	Net, Node LogGP
	// Gamma is the time of a reduction or a copy, in microseconds a byte.
	Gamma float64
}

// DefaultMachine is a cluster of today: 100 Gbit/s between nodes, shared memory
// inside, and cores that reduce or copy 10 GB/s.
func DefaultMachine() Machine {
	return Machine{
		Net:   LogGP{Latency: 1.2, Overhead: 0.3, Gap: 0.3, PerByte: 0.08e-3},
		Node:  LogGP{Latency: 0.04, Overhead: 0.03, Gap: 0.05, PerByte: 0.04e-3},
		Gamma: 0.1e-3,
	}
}

func (m *Machine) validate() error {
	for _, x := range []float64{
		m.Net.Latency, m.Net.Overhead, m.Net.Gap, m.Net.PerByte,
		m.Node.Latency, m.Node.Overhead, m.Node.Gap, m.Node.PerByte, m.Gamma,
	} {
		if !possible(x) {
			return fmt.Errorf("sim: machine %+v: %v is no time", *m, x)
		}
	}
	return nil
}
