// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gompi/mpi"
	"gompi/rma"
	"gompi/sessions"
)

// publication is the constant data of a member, from its first Checkpoint of a set until the
// set is replaced. With method PULL other processes may read it.
type publication struct {
	store       *sessions.Store
	ranks, rank int
	memory      [][]byte       // by array; nil of variable data
	exposed     []*rma.Exposed // by array, with PULL
}

// constantKey is the key, in the store of the set, under which a rank offers its constant
// data. It names the edition of the registrations and the number of data.
func constantKey(edition, data, rank int) string {
	return fmt.Sprintf("gompi.mam.keys.%d.%d.%d", edition, data, rank)
}

// offerBytes is the length of an offer: a key of exposed memory, and the size of that memory.
// A list of offers has one for each array; zeros offer nothing.
const offerBytes = len(rma.Key{}) + 8

func putOffer(b []byte, key rma.Key, bytes int) {
	copy(b, key[:])
	binary.LittleEndian.PutUint64(b[len(key):], uint64(bytes))
}

// publishConstant notes the constant data. If PULL may be the method it exposes the data, and
// puts the offers into the store of the set.
func (m *Module) publishConstant(store *sessions.Store) error {
	m.withdrawConstant()
	p := &publication{store: store, ranks: m.comm.Size(), rank: m.comm.Rank()}
	exposes := m.config.mayExpose()
	b := make([]byte, offerBytes*len(m.arrays))
	for i, x := range m.arrays {
		var memory []byte
		var e *rma.Exposed
		if x.Mode == Constant {
			if err := x.checkLength(p.rank); err != nil {
				return errors.Join(m.refuse("Checkpoint", mpi.ErrCount, err), p.withdraw())
			}
			if memory = x.memory(); memory == nil {
				memory = []byte{}
			}
		}
		if exposes && x.Mode == Constant && x.shared == nil {
			var err error
			if e, err = rma.Expose(m.comm.Process(), memory); err != nil {
				return errors.Join(err, p.withdraw())
			}
			putOffer(b[i*offerBytes:], e.Key(), len(memory))
		}
		p.memory, p.exposed = append(p.memory, memory), append(p.exposed, e)
	}
	if exposes {
		if err := store.Put(constantKey(m.edition, len(m.arrays), p.rank), b); err != nil {
			return errors.Join(err, p.withdraw())
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.publication = p
	return nil
}

// withdrawConstant ends the publication. All processes that were to read have read then: a
// change is committed, or the watch is over.
func (m *Module) withdrawConstant() {
	m.mu.Lock()
	p := m.publication
	m.publication = nil
	m.mu.Unlock()
	if p != nil {
		_ = p.withdraw()
	}
}

func (p *publication) withdraw() (err error) {
	for _, e := range p.exposed {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	return err
}
