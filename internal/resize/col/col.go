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

// Version is that of the language.
const Version = 1

// Bounds of what a COL may say.
const (
	MaxBytes    = 64 << 10 // of its JSON form
	MaxSize     = 1 << 16  // processes
	MaxList     = 1 << 10  // sizes, points
	MaxPriority = 1000
	MaxNumber   = 1e15 // seconds, slopes, iterations
)

// Why a COL is not taken.
var (
	ErrVersion = errors.New("col: a version that this program does not know")
	ErrInvalid = errors.New("col: invalid")
)

// Schema is the JSON schema of a COL.
//
//go:embed schema.json
var Schema []byte

// COL is what a job says of itself. The zero value of a field says nothing, and is left
// out of the JSON form. Times are in seconds.
type COL struct {
	Version int `json:"version"`
	// Model is how fast the job is with how many processes; nil: not known. It is then
	// believed to use its processes well, up to Pref if that is said.
	Model *Model `json:"model,omitempty"`

	// Min and Max bound the processes of the job; Max 0: no bound. Pref is how many it
	// would like to have: what it starts with, and what it is brought up to first.
	Min  int `json:"min,omitempty"`
	Max  int `json:"max,omitempty"`
	Pref int `json:"pref,omitempty"`
	// Sizes are the only ones allowed, Invalid those that are not.
	Sizes   []int `json:"sizes,omitempty"`
	Invalid []int `json:"invalid,omitempty"`
	// PowerOfTwo: only such sizes.
	PowerOfTwo bool `json:"power_of_two,omitempty"`
	// Delta: a change is by a multiple of so many. Factor: it multiplies or divides the
	// size by a power of it. Neither binds the first size.
	Delta  int `json:"delta,omitempty"`
	Factor int `json:"factor,omitempty"`
	// Mapping is which slots the processes take.
	Mapping Mapping `json:"mapping,omitempty"`

	// Priority weighs the job's speed against that of others, 1 to MaxPriority; 0 is 1.
	Priority int `json:"priority,omitempty"`

	// Cost is how long a change from p to q processes stops the job: redistribution and
	// all; nil: 0.
	Cost *Expr `json:"cost,omitempty"`
	// Hysteresis is by which share a change has to be better than none, beyond its cost:
	// 0.1 is a tenth.
	Hysteresis float64 `json:"hysteresis,omitempty"`
	// Settle is the least time from one change to the next.
	Settle float64 `json:"settle,omitempty"`
	// Remaining is how many iterations are still to come; 0: not known. It needs a model
	// that knows times.
	Remaining float64 `json:"remaining,omitempty"`
}

// Decode reads the JSON form: one object of Version, with no other fields than these.
// Errors: ErrVersion, ErrInvalid.
func Decode(text []byte) (*COL, error) {
	if len(text) > MaxBytes {
		return nil, invalid("%d bytes, at most %d allowed", len(text), MaxBytes)
	}
	// A newer version may have fields that this one has not.
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
		return nil, invalid("something behind the object")
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

// Encode is the JSON form of a COL, whose version is filled in. Errors: ErrInvalid.
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

// Check says what is wrong with a COL: ErrVersion, ErrInvalid.
func (c *COL) Check() error {
	if c.Version != Version {
		return fmt.Errorf("%w: %d, not %d", ErrVersion, c.Version, Version)
	}
	for _, n := range []struct {
		name      string
		n, lo, hi int
	}{
		{"min", c.Min, 0, MaxSize}, {"max", c.Max, 0, MaxSize}, {"pref", c.Pref, 0, MaxSize},
		{"delta", c.Delta, 0, MaxSize}, {"factor", c.Factor, 0, MaxSize}, {"priority", c.Priority, 0, MaxPriority},
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
		return invalid("pref %d is no size that is allowed", c.Pref)
	}
	if _, err := c.Mapping.perNode(); err != nil {
		return err
	}
	if c.Cost != nil && c.Cost.code == nil {
		return invalid("a cost that was not parsed")
	}
	if c.Model == nil {
		if c.Remaining != 0 {
			return invalid("remaining iterations without a model")
		}
		return nil
	}
	if err := c.Model.check(); err != nil {
		return err
	}
	if _, ok := c.Model.Seconds(max(1, c.Min)); c.Remaining != 0 && !ok {
		return invalid("remaining iterations, of unknown times")
	}
	return nil
}

// Mapping is which slots processes take: "" and "dense" any, "sparse" a host for each,
// "4:node" a host for each four.
type Mapping string

// perNode is how many processes have a host for themselves; 0: they share.
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

// Slots is how many slots so many processes take, on hosts of so many slots each; 0:
// there are no hosts.
func (m Mapping) Slots(processes, host int) int {
	n, err := m.perNode()
	if err != nil || n == 0 || host <= 0 {
		return processes
	}
	n = min(n, host) // a host has no more places than slots
	return (processes + n - 1) / n * host
}

func invalid(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, a...)...)
}

// within: also no NaN.
func within(x, most float64) bool { return x >= 0 && x <= most }

// finite: also no NaN.
func finite(x float64) bool { return math.Abs(x) <= MaxNumber }
