// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"
	"slices"

	"gompi/mpi"
)

// Config returns the current configuration. Fields that nobody has set are Auto. Local.
//
// MAM_Contains_strat of MaM.
func (m *Module) Config() Config { return m.config }

// SetConfig sets the configuration of the changes from now on to that of rank 0. Settings of
// gompirun and of the environment win over it; Config returns the result. Targets counts for Init
// only. All ranks get ErrChanging while a change is under way on one of them. A change that was
// granted, but that no rank has seen yet, is rolled back. Collective over Comm, between the same
// two calls of Checkpoint on all.
//
// MAM_Set_configuration and MAM_Set_key_configuration of MaM, which ignores them during a change.
func (m *Module) SetConfig(c Config) error {
	const op = "SetConfig"
	if err := m.beginEdit(op, nil); err != nil {
		return err
	}
	c.Targets = m.config.Targets
	err := m.configure(op, m.moduleComm.WithContext(m.ctx), c)
	m.endEdit()
	return err
}

// Unregister forgets data, by its name. The memory then belongs to the program alone; that of an
// Array stays until Finalize. The name may be registered again: with another variable, number of
// elements or type. ErrChanging, and changes that no rank has seen yet, are as with SetConfig.
// Collective over Comm, between the same two calls of Checkpoint on all.
//
// Together with a registration it is MAM_Data_modify of MaM.
func (m *Module) Unregister(name string) error {
	a := m.named(name)
	if err := m.unregister("Unregister", name); err != nil {
		return err
	}
	if a.shared != nil {
		m.keptMemory = append(m.keptMemory, a.shared)
	}
	return nil
}

func (m *Module) unregister(op, name string) error {
	var bad error
	at := slices.IndexFunc(m.arrays, func(a *array) bool { return a.Name == name })
	if at < 0 {
		bad = fmt.Errorf("no data %q is registered", name)
	}
	if err := m.beginEdit(op, bad); err != nil {
		return err
	}
	m.mu.Lock()
	m.arrays = slices.Concat(m.arrays[:at], m.arrays[at+1:]) // a change that is being prepared may have the old list
	m.mu.Unlock()
	m.endEdit()
	return nil
}

// What a rank says before an edit. The greatest one of all ranks holds.
const (
	editAllowed = iota
	editDuringChange
	editRefused
)

var errOtherRank = errors.New("another rank cannot do it")

// beginEdit agrees among all ranks whether registrations or settings may be edited now. From then
// on no change is prepared here, until the next Checkpoint has published the result: no change
// sees half of an edit.
func (m *Module) beginEdit(op string, bad error) error {
	if err := m.open(op); err != nil {
		return err
	}
	if m.current != nil { // the same on all
		return m.refuse(op, mpi.ErrArg, ErrChanging)
	}
	if err := m.ensureComm(); err != nil {
		return err
	}
	word := editAllowed
	m.mu.Lock()
	closes := m.published && !m.isComing()
	if m.published && !closes {
		word = editDuringChange
	}
	if closes {
		m.closeGate()
	}
	m.mu.Unlock()
	if bad != nil {
		word = editRefused
	}
	all, err := mpi.AllreduceOne(m.moduleComm.WithContext(m.ctx), word, mpi.Max)
	switch {
	case err != nil:
	case bad != nil:
		err = m.refuse(op, mpi.ErrArg, bad)
	case all == editRefused:
		err = m.refuse(op, mpi.ErrAborted, errOtherRank)
	case all == editDuringChange:
		err = m.refuse(op, mpi.ErrArg, ErrChanging)
	}
	if err != nil && closes {
		m.openGate()
	}
	return err
}

// endEdit notes that something was edited.
func (m *Module) endEdit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.edition, m.edited = m.edition+1, true
}

// closeGate stops the preparation of changes until openGate; mu is held.
func (m *Module) closeGate() {
	if m.published {
		m.published, m.publishedGate = false, make(chan struct{})
	}
}

// openGate lets changes be prepared.
func (m *Module) openGate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.published {
		m.published = true
		close(m.publishedGate)
	}
}

// ensureComm makes the communicator of the module. Collective, without a message.
func (m *Module) ensureComm() (err error) {
	if m.moduleComm == nil {
		m.moduleComm, err = m.s.Comm(m.set)
	}
	return err
}
