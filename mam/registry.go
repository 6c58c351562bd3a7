// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"gompi/internal/resize/layout"
)

// registryKey is the key of the registry in the store of a set. Rank 0 puts it there at its first
// Checkpoint.
const registryKey = "gompi.mam.registry"

const (
	registryVersion = 1
	maxArrays       = 1 << 10
	maxName         = 1 << 10  // bytes
	maxText         = 64 << 20 // bytes of a registry as text
	maxElem         = 1 << 20  // bytes of an element
	maxShared       = 4 << 10  // bytes of a name of host memory
)

// registry is what newcomers must know first: the registrations and the configuration of rank 0,
// which all ranks have.
type registry struct {
	Version int
	Ranks   int // of the set
	Edition int // how often registrations or settings were edited
	Config  Config
	// Settings say where the configuration comes from.
	Settings []Setting
	Inputs   inputs // of Auto
	Data     []entry
	// Weights are the lists of weights of the data, each once. It is set in the encoded form
	// only.
	Weights [][]int64 `json:",omitempty"`
}

// entry describes the data of one registration.
type entry struct {
	Name       string
	Type       string // the Go type of the elements
	Bytes      int64  // of an element
	Replicated bool
	One        bool // one value, not a slice
	Encoded    bool `json:",omitempty"` // a value with its own encoding; of constant data the rule has the length
	Mode       Mode
	Shared     string        `json:",omitempty"` // the name of the host memory in which it lies
	Marked     bool          `json:",omitempty"` // variable data, see Mode
	Rule       layout.Layout // of replicated data only the number of elements
	// WeightsAt is 1 + the index in registry.Weights of the rule's weights, in the encoded form;
	// else 0.
	WeightsAt int `json:",omitempty"`
}

func (e *entry) kind() string {
	s := "distributed"
	if e.Replicated {
		s = "replicated"
	}
	if e.One {
		s = "one replicated value,"
	}
	if e.Encoded {
		s = "one encoded value,"
	}
	mode := e.Mode
	if e.Marked {
		mode = Marked
	}
	return fmt.Sprintf("%s %v data", s, mode)
}

func (e *entry) check() error {
	switch {
	case e.Name == "" || len(e.Name) > maxName || len(e.Type) > maxName:
		return fmt.Errorf("a name of %d bytes, 1 to %d allowed", len(e.Name), maxName)
	case e.Bytes < 1 || e.Bytes > maxElem:
		return fmt.Errorf("%q has elements of %d bytes, 1 to %d allowed", e.Name, e.Bytes, maxElem)
	case e.Mode > Constant || e.Marked && e.Mode != Variable:
		return fmt.Errorf("%q has mode %d", e.Name, e.Mode)
	case e.Shared != "" && (e.Replicated || !e.Rule.Contiguous() || e.Rule.N < 1 || len(e.Shared) > maxShared):
		return fmt.Errorf("%q lies in memory with a name of %d bytes, %v of %d elements", e.Name, len(e.Shared), e.Rule.Kind, e.Rule.N)
	case e.One && (!e.Replicated || e.Rule.N != 1):
		return fmt.Errorf("%q is one value of %d", e.Name, e.Rule.N)
	case e.Encoded && (!e.Replicated || e.One || e.Marked || e.Bytes != 1 || e.Rule.N > maxValue || e.Mode == Variable && e.Rule.N != 0):
		return fmt.Errorf("%q is an encoded value, %s of %d units of %d bytes, at most %d bytes allowed", e.Name, e.kind(), e.Rule.N, e.Bytes, maxValue)
	}
	if err := e.Rule.Check(); err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	if n := e.Rule.N; n > layout.MaxElems/e.Bytes {
		return fmt.Errorf("%q has %d elements of %d bytes", e.Name, n, e.Bytes)
	}
	return nil
}

// registry returns the registry of this process.
func (m *Module) registry(arrays []*array) *registry {
	r := &registry{Version: registryVersion, Ranks: m.comm.Size(), Edition: m.edition, Config: m.config, Settings: m.settings, Inputs: m.inputs}
	for _, a := range arrays {
		r.Data = append(r.Data, a.entry)
	}
	return r
}

// compact returns the registry with each list of weights once.
func (r *registry) compact() *registry {
	c := *r
	c.Data, c.Weights = slices.Clone(r.Data), nil
	for i := range c.Data {
		e := &c.Data[i]
		w := e.Rule.Weights
		if len(w) == 0 {
			continue
		}
		at := slices.IndexFunc(c.Weights, func(o []int64) bool { return slices.Equal(o, w) })
		if at < 0 {
			at, c.Weights = len(c.Weights), append(c.Weights, w)
		}
		e.Rule.Weights, e.WeightsAt = nil, at+1
	}
	return &c
}

// expand undoes compact.
func (r *registry) expand() error {
	for i := range r.Data {
		e := &r.Data[i]
		if e.WeightsAt == 0 {
			continue
		}
		if e.WeightsAt < 0 || e.WeightsAt > len(r.Weights) || e.Rule.Weights != nil {
			return fmt.Errorf("%q has weights %d of %d lists", e.Name, e.WeightsAt, len(r.Weights))
		}
		e.Rule.Weights, e.WeightsAt = r.Weights[e.WeightsAt-1], 0
	}
	r.Weights = nil
	return nil
}

// encode returns the registry as it is put. It is compressed, because weights of rows are many
// and similar.
func (r *registry) encode() ([]byte, error) {
	text, err := json.Marshal(r.compact())
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("what describes %d data has %d bytes, at most %d allowed", len(r.Data), len(text), maxText)
	}
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// fits returns an error if the registry is too long.
func (r *registry) fits() error {
	if !r.mayExceed() {
		return nil
	}
	_, err := r.encode()
	return err
}

// mayExceed reports whether the registry may be too long. It is a quick estimate, never too low.
func (r *registry) mayExceed() bool {
	c, n := r.compact(), 4096
	for _, e := range c.Data {
		n += len(e.Name)*6 + len(e.Type)*6 + len(e.Shared)*6 + 256 + 20*len(e.Rule.Dims)
		for _, list := range e.Rule.Counts {
			n += 20 * len(list)
		}
		for _, list := range e.Rule.Parts {
			n += 50 * len(list)
		}
	}
	for _, list := range c.Weights {
		n += 20 * len(list)
	}
	return n > maxText
}

// hash returns the same number on all ranks that have the same registrations and have edited them
// equally often.
func (r *registry) hash() uint64 {
	h := fnv.New64a()
	c := r.compact()
	if b, err := json.Marshal(struct {
		Ranks, Edition int
		Data           []entry
		Weights        [][]int64
	}{c.Ranks, c.Edition, c.Data, c.Weights}); err == nil {
		h.Write(b)
	}
	return h.Sum64()
}

// readRegistry decodes and checks what another process has put.
func readRegistry(b []byte) (*registry, error) {
	d := json.NewDecoder(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxText))
	d.DisallowUnknownFields()
	r := new(registry)
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("the registry of the sources: %w", err)
	}
	if err := r.expand(); err != nil {
		return nil, fmt.Errorf("the registry of the sources: %w", err)
	}
	if r.Version != registryVersion || r.Edition < 0 || r.Ranks < 1 || r.Ranks > layout.MaxRanks || len(r.Data) > maxArrays || len(r.Settings) > 16 {
		return nil, fmt.Errorf("the registry of the sources: version %d, %d ranks, %d data", r.Version, r.Ranks, len(r.Data))
	}
	if err := errors.Join(r.Config.check(), r.Inputs.check()); err != nil {
		return nil, fmt.Errorf("the registry of the sources: %w", err)
	}
	names := map[string]bool{}
	for i := range r.Data {
		e := &r.Data[i]
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("the registry of the sources: %w", err)
		}
		if names[e.Name] {
			return nil, fmt.Errorf("the registry of the sources has %q twice", e.Name)
		}
		names[e.Name] = true
	}
	return r, nil
}
