// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"gompi/internal/layout"
	"gompi/sessions"
)

// What stands in the store of a set: the registry, by rank 0 at its first Checkpoint.
const registryKey = "gompi.mam.registry"

const (
	registryVersion = 1
	mostArrays      = 1 << 10
	mostName        = 1 << 10 // bytes
	mostElem        = 1 << 20 // bytes of an element
	mostShared      = 4 << 10 // bytes of a name of memory
)

// registry is what newcomers must know before they have anything: rank 0's data, as all
// have it.
type registry struct {
	Version int
	Ranks   int // of the set
	Edition int // how often something was changed between changes
	Config  Config
	// Settings are where the configuration comes from.
	Settings []Setting
	Inputs   inputs // of Auto
	Data     []entry
}

// entry is one of the data.
type entry struct {
	Name       string
	Type       string // of the elements, as Go names it
	Bytes      int64  // of an element
	Replicated bool
	One        bool // a value, not a slice
	Mode       Mode
	Shared     string        `json:",omitempty"` // the name of the memory of the hosts in which it lies
	Marked     bool          `json:",omitempty"` // variable data, see Mode
	Rule       layout.Layout // of replicated data only how many elements there are
}

func (e *entry) kind() string {
	s := "distributed"
	if e.Replicated {
		s = "replicated"
	}
	if e.One {
		s = "one replicated value,"
	}
	mode := e.Mode
	if e.Marked {
		mode = Marked
	}
	return fmt.Sprintf("%s %v data", s, mode)
}

func (e *entry) check() error {
	switch {
	case e.Name == "" || len(e.Name) > mostName || len(e.Type) > mostName:
		return fmt.Errorf("a name of %d bytes, 1 to %d allowed", len(e.Name), mostName)
	case e.Bytes < 1 || e.Bytes > mostElem:
		return fmt.Errorf("%q has elements of %d bytes, 1 to %d allowed", e.Name, e.Bytes, mostElem)
	case e.Mode > Constant || e.Marked && e.Mode != Variable:
		return fmt.Errorf("%q has mode %d", e.Name, e.Mode)
	case e.Shared != "" && (e.Replicated || !e.Rule.Contiguous() || e.Rule.N < 1 || len(e.Shared) > mostShared):
		return fmt.Errorf("%q lies in memory with a name of %d bytes, %v of %d elements", e.Name, len(e.Shared), e.Rule.Kind, e.Rule.N)
	case e.One && (!e.Replicated || e.Rule.N != 1):
		return fmt.Errorf("%q is one value of %d", e.Name, e.Rule.N)
	}
	if err := e.Rule.Check(); err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	if n := e.Rule.N; n > layout.MostElems/e.Bytes {
		return fmt.Errorf("%q has %d elements of %d bytes", e.Name, n, e.Bytes)
	}
	return nil
}

// registry is what this process would put.
func (m *Module) registry(arrays []*array) *registry {
	r := &registry{Version: registryVersion, Ranks: m.comm.Size(), Edition: m.edition, Config: m.config, Settings: m.settings, Inputs: m.inputs}
	for _, a := range arrays {
		r.Data = append(r.Data, a.entry)
	}
	return r
}

func (r *registry) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err == nil && len(b) > sessions.MaxValue {
		err = fmt.Errorf("what describes %d data has %d bytes, at most %d allowed", len(r.Data), len(b), sessions.MaxValue)
	}
	return b, err
}

// hash is the same on all that have registered the same, and changed it as often.
func (r *registry) hash() uint64 {
	h := fnv.New64a()
	if b, err := json.Marshal(struct {
		Ranks, Edition int
		Data           []entry
	}{r.Ranks, r.Edition, r.Data}); err == nil {
		h.Write(b)
	}
	return h.Sum64()
}

// readRegistry checks what another process has put.
func readRegistry(b []byte) (*registry, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	r := new(registry)
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("the registry of the sources: %w", err)
	}
	if r.Version != registryVersion || r.Edition < 0 || r.Ranks < 1 || r.Ranks > layout.MostRanks || len(r.Data) > mostArrays || len(r.Settings) > 16 {
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
