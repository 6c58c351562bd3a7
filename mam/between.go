// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"
	"slices"

	"gompi/mpi"
)

// Config is the configuration that holds; what nobody has said is Auto. Local.
//
// MAM_Contains_strat of MaM looks into it.
func (m *Module) Config() Config { return m.config }

// SetConfig is the configuration of the changes from now on: what rank 0 says, where no
// setting of gompirun or of the environment wins over it, which Config tells afterwards.
// Targets counts for Init only. ErrChanging, on all ranks, while a change is under way on
// one of them. Of a change that was granted and is seen nowhere yet nothing comes: it is
// rolled back. Collective over Comm, between the same two calls of Checkpoint on all.
//
// MAM_Set_configuration and MAM_Set_key_configuration of MaM, which ignores them during a
// change.
func (m *Module) SetConfig(c Config) error {
	const op = "SetConfig"
	if err := m.between(op, nil); err != nil {
		return err
	}
	c.Targets = m.config.Targets
	err := m.configure(op, m.own.WithContext(m.ctx), c)
	m.edited()
	return err
}

// Unregister forgets data, by its name, which is the program's alone from then on; the same
// memory of an Array until Finalize. The same name may be registered again: with another variable, another number of elements, another
// type. ErrChanging and changes that are seen nowhere yet are as with SetConfig. Collective
// over Comm, between the same two calls of Checkpoint on all.
//
// With a registration it is MAM_Data_modify of MaM.
func (m *Module) Unregister(name string) error {
	a := m.named(name)
	if err := m.unregister("Unregister", name); err != nil {
		return err
	}
	if a.shared != nil {
		m.kept = append(m.kept, a.shared)
	}
	return nil
}

func (m *Module) unregister(op, name string) error {
	var bad error
	at := slices.IndexFunc(m.arrays, func(a *array) bool { return a.Name == name })
	if at < 0 {
		bad = fmt.Errorf("no data %q is registered", name)
	}
	if err := m.between(op, bad); err != nil {
		return err
	}
	m.mu.Lock()
	m.arrays = slices.Concat(m.arrays[:at], m.arrays[at+1:]) // who prepares a change may have the old list
	m.mu.Unlock()
	m.edited()
	return nil
}

// What a rank says before something changes between changes: the greatest one holds.
const (
	mayChange = iota
	isChanging
	isWrong
)

var errOthers = errors.New("another rank cannot do it")

// between finds whether all ranks may do what no change is to see half done. Then no
// change is prepared here before the next Checkpoint has told what there is.
func (m *Module) between(op string, bad error) error {
	if err := m.open(op); err != nil {
		return err
	}
	if m.adopting != nil { // on all
		return m.refuse(op, mpi.ErrArg, ErrChanging)
	}
	if err := m.alone(); err != nil {
		return err
	}
	word := mayChange
	m.mu.Lock()
	closes := m.admitted && !m.isComing()
	if m.admitted && !closes {
		word = isChanging
	}
	if closes {
		m.closeGate()
	}
	m.mu.Unlock()
	if bad != nil {
		word = isWrong
	}
	all, err := mpi.AllreduceOne(m.own.WithContext(m.ctx), word, mpi.Max)
	switch {
	case err != nil:
	case bad != nil:
		err = m.refuse(op, mpi.ErrArg, bad)
	case all == isWrong:
		err = m.refuse(op, mpi.ErrAborted, errOthers)
	case all == isChanging:
		err = m.refuse(op, mpi.ErrArg, ErrChanging)
	}
	if err != nil && closes {
		m.openGate()
	}
	return err
}

// edited notes that something has changed between changes.
func (m *Module) edited() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.edition, m.changed = m.edition+1, true
}

// closeGate lets no change be prepared before openGate; mu is held.
func (m *Module) closeGate() {
	if m.admitted {
		m.admitted, m.gate = false, make(chan struct{})
	}
}

// openGate lets changes be prepared.
func (m *Module) openGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.admitted {
		m.admitted = true
		close(m.gate)
	}
}

// alone makes the communicator of the module alone. Collective, without a message.
func (m *Module) alone() (err error) {
	if m.own == nil {
		m.own, err = m.s.Comm(m.set)
	}
	return err
}
