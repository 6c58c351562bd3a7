// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"gompi/internal/base/wire"
	"gompi/internal/engine/match"
)

// NewInterContext registers an intercommunicator between two groups that have
// no process in common. Self must be in local.
func (e *Engine) NewInterContext(id wire.ContextID, local, remote wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, local, owner)
	if err != nil {
		return nil, err
	}
	if remote.Len() == 0 {
		return nil, fmt.Errorf("an intercommunicator has no remote group")
	}
	if err := sizeFits(remote); err != nil {
		return nil, err
	}
	c.Remote, c.local, c.peers = remote, c.peers, make([]*Peer, remote.Len())
	return c, e.register(c, nil)
}

// NewContext registers a communicator. Self must be a member. Messages that arrived before
// it was registered have waited for it.
func (e *Engine) NewContext(id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	c, err := e.newContext(id, members, owner)
	if err != nil {
		return nil, err
	}
	c.offerArea()
	return c, e.register(c, nil)
}

func (e *Engine) newContext(id wire.ContextID, members wire.Members, owner any) (*Context, error) {
	rank := members.Index(e.cfg.Self)
	if rank < 0 {
		return nil, fmt.Errorf("process %v is not a member of %v", e.cfg.Self, id)
	}
	if err := sizeFits(members); err != nil {
		return nil, err
	}
	c := &Context{
		ID:        id,
		Members:   members,
		Rank:      rank,
		Owner:     owner,
		e:         e,
		rank32:    int32(rank),
		areaState: areaNever,
		readState: readsKnown,
		ringFrom:  -1,
	}
	if c.peers = c.fewPeers[:]; members.Len() > len(c.fewPeers) {
		c.peers = make([]*Peer, members.Len())
	}
	c.peers = c.peers[:members.Len()]
	for pl := range c.keys {
		c.keys[pl] = match.NewKey(id, wire.TrafficClass(pl), 0, 0)
	}
	c.mine = c.keys[wire.TrafficP2P].With(c.rank32, 0)
	return c, nil
}

func sizeFits(m wire.Members) error {
	if m.Len() > match.MaxSource {
		return fmt.Errorf("%d processes are more than the %d a communicator can hold", m.Len(), match.MaxSource)
	}
	return nil
}

// register makes a communicator known. It was made from parent; nil means from none with
// its members.
func (e *Engine) register(c, parent *Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.contexts[c.ID] != nil {
		return fmt.Errorf("communicator %v exists already", c.ID)
	}
	if e.freed.Has(c.ID) {
		return fmt.Errorf("communicator %v was freed: its messages cannot be told from those of a second one", c.ID)
	}
	e.contexts[c.ID] = c
	c.countLost()
	if parent == nil || e.contexts[parent.ID] != parent || !c.Members.Equal(parent.Members) {
		e.hold(c) // for all others the control plane is asked, or has answered
	}
	e.takeNotice(c)
	return nil
}
