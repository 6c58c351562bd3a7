// SPDX-License-Identifier: Apache-2.0

package col

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Version is the version of the language.
const Version = 1

// Bounds on a COL.
const (
	MaxBytes    = 64 << 10 // size of the JSON form
	MaxSize     = 1 << 16  // processes
	MaxList     = 1 << 10  // entries of a list of sizes or points
	MaxPriority = 1000
	MaxNumber   = 1e15 // seconds, slopes, iterations
)

// Errors for a COL that is not accepted.
var (
	ErrVersion = errors.New("col: unknown version")
	ErrInvalid = errors.New("col: invalid")
)

// Schema is the JSON schema of a COL.
//
//go:embed schema.json
var Schema []byte

// COL is what a job says about itself. The zero value of a field says nothing, and the JSON form
// omits it. Times are in seconds.
type COL struct {
	Version int `json:"version"`
	// Model is the speed of the job by the number of processes. If nil, the job is assumed to
	// use its processes well, up to Pref if that is set.
	Model *Model `json:"model,omitempty"`

	// Min and Max bound the number of processes; if Max is 0 there is no upper bound. Pref is
	// the preferred number: the job starts with it, and a manager first brings the job up to it.
	Min  int `json:"min,omitempty"`
	Max  int `json:"max,omitempty"`
	Pref int `json:"pref,omitempty"`
	// Sizes, if not empty, lists the only allowed sizes. Invalid lists forbidden sizes.
	Sizes   []int `json:"sizes,omitempty"`
	Invalid []int `json:"invalid,omitempty"`
	// PowerOfTwo allows only powers of two.
	PowerOfTwo bool `json:"power_of_two,omitempty"`
	// Delta requires that a change adds or removes a multiple of Delta processes. Factor
	// requires that it multiplies or divides the size by a power of Factor. Neither applies to
	// the first size.
	Delta  int `json:"delta,omitempty"`
	Factor int `json:"factor,omitempty"`
	// Mapping says which slots the processes take.
	Mapping Mapping `json:"mapping,omitempty"`

	// Priority is the weight of the job's speed against other jobs, 1 to MaxPriority; 0 means 1.
	Priority int `json:"priority,omitempty"`

	// Cost is how long a change from p to q processes stops the job, with the redistribution of
	// data; nil means 0.
	Cost *Expr `json:"cost,omitempty"`
	// Hysteresis is the share by which a change must gain more than it costs: 0.1 is a tenth.
	Hysteresis float64 `json:"hysteresis,omitempty"`
	// Settle is the least time between two changes.
	Settle float64 `json:"settle,omitempty"`
	// Remaining is the number of iterations to come; 0: unknown. It needs a model that knows
	// times.
	Remaining float64 `json:"remaining,omitempty"`
}

// Decode decodes the JSON form: one object of Version without unknown fields. Errors: ErrVersion,
// ErrInvalid.
func Decode(text []byte) (*COL, error) {
	if len(text) > MaxBytes {
		return nil, invalid("%d bytes, at most %d allowed", len(text), MaxBytes)
	}
	// A newer version may have fields that this one does not know.
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, invalid("%v", err)
	}
	if v.Version != Version {
		return nil, fmt.Errorf("%w: %d, not %d", ErrVersion, v.Version, Version)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	c := new(COL)
	if err := d.Decode(c); err != nil {
		return nil, invalid("%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, invalid("text follows the object")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if m := c.Model; m != nil && m.Kind == Fitted {
		fit, err := m.fitted()
		if err != nil {
			return nil, err
		}
		m.fit = &fit
	}
	return c, nil
}

// Encode returns the JSON form of c with the current version. Errors: ErrInvalid.
func (c *COL) Encode() ([]byte, error) {
	d := *c
	d.Version = Version
	if err := d.Check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(&d)
	if err != nil {
		return nil, invalid("%v", err)
	}
	if len(text) > MaxBytes {
		return nil, invalid("%d bytes, at most %d allowed", len(text), MaxBytes)
	}
	return text, nil
}

// Check returns an error if c is not valid: ErrVersion, ErrInvalid.
func (c *COL) Check() error {
	if c.Version != Version {
		return fmt.Errorf("%w: %d, not %d", ErrVersion, c.Version, Version)
	}
	for _, n := range []struct {
		name      string
		n, lo, hi int
	}{
		{"min", c.Min, 0, MaxSize},
		{"max", c.Max, 0, MaxSize},
		{"pref", c.Pref, 0, MaxSize},
		{"delta", c.Delta, 0, MaxSize},
		{"factor", c.Factor, 0, MaxSize},
		{"priority", c.Priority, 0, MaxPriority},
	} {
		if n.n < n.lo || n.n > n.hi {
			return invalid("%s is %d, %d to %d allowed", n.name, n.n, n.lo, n.hi)
		}
	}
	switch {
	case c.Factor == 1:
		return invalid("factor is 1")
	case c.Max != 0 && c.Min > c.Max:
		return invalid("min %d is more than max %d", c.Min, c.Max)
	case !within(c.Hysteresis, 10) || !within(c.Settle, MaxNumber) || !within(c.Remaining, MaxNumber):
		return invalid("hysteresis %v, settle %v, remaining %v", c.Hysteresis, c.Settle, c.Remaining)
	}
	for name, list := range map[string][]int{"sizes": c.Sizes, "invalid": c.Invalid} {
		if len(list) > MaxList {
			return invalid("%s has %d numbers, at most %d allowed", name, len(list), MaxList)
		}
		if slices.ContainsFunc(list, func(n int) bool { return n < 1 || n > MaxSize }) {
			return invalid("%s %v: 1 to %d processes allowed", name, list, MaxSize)
		}
	}
	if c.Pref != 0 && !c.Allows(c.Pref) {
		return invalid("pref %d is not an allowed size", c.Pref)
	}
	if _, err := c.Mapping.perNode(); err != nil {
		return err
	}
	if c.Cost != nil && c.Cost.code == nil {
		return invalid("the cost was not parsed")
	}
	if c.Model == nil {
		if c.Remaining != 0 {
			return invalid("remaining iterations need a model")
		}
		return nil
	}
	if err := c.Model.check(); err != nil {
		return err
	}
	if _, ok := c.Model.Seconds(max(1, c.Min)); c.Remaining != 0 && !ok {
		return invalid("remaining iterations need a model with times")
	}
	return nil
}

// Mapping says which slots processes take. "" and "dense" mean any slots, "sparse" a host for each
// process, and "4:node" a host for each four processes.
type Mapping string

// perNode returns the number of processes per host, or 0 if processes share hosts freely.
func (m Mapping) perNode() (int, error) {
	switch m {
	case "", "dense":
		return 0, nil
	case "sparse":
		return 1, nil
	}
	text, ok := strings.CutSuffix(string(m), ":node")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n < 1 || n > MaxSize || text != strconv.Itoa(n) {
		return 0, invalid("mapping %.40q is not dense, sparse or N:node", string(m))
	}
	return n, nil
}

// Slots returns the number of slots that so many processes take, on hosts of so many slots each. If
// host is 0, there are no hosts.
func (m Mapping) Slots(processes, host int) int {
	n, err := m.perNode()
	if err != nil || n == 0 || host <= 0 {
		return processes
	}
	n = min(n, host) // a host has no more processes than slots
	return (processes + n - 1) / n * host
}

func invalid(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, a...)...)
}

// within reports whether x is a number from 0 to most; it is false for NaN.
func within(x, most float64) bool { return x >= 0 && x <= most }

// finite reports whether x is a number of at most MaxNumber; it is false for NaN.
func finite(x float64) bool { return math.Abs(x) <= MaxNumber }
