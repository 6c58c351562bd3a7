// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"

	"gompi/internal/calls"
	"gompi/internal/engine"
	"gompi/internal/fault"
	"gompi/internal/wire"
)

// InSet is what the processes of a set agree on as its name is the same for all,
// for the communicator that comes with it: each of them may make it once.
func (p *Process) InSet(s wire.Set) (Agreed, Groups, string) {
	return Agreed{Op: "Open", ID: s.Context(p.Self.Job, 0), members: s.Members, hosts: s.Hosts}, Groups{Local: s.Members}, s.URI
}

// OfSet is what they agree on for the k-th communicator of the set: InSet is that of
// 0. It takes no message while there are reserved ids; later they meet, and the call
// returns on the first of them at once, on the others when that has called.
func (p *Process) OfSet(op calls.Name, user context.Context, s wire.Set, k uint32) (Agreed, Groups, *fault.Fault) {
	a := Agreed{Op: op, members: s.Members, hosts: s.Hosts}
	g := Groups{Local: s.Members}
	if k < wire.SetSerials {
		a.ID = s.Context(p.Self.Job, k)
		return a, g, nil
	}
	key := binary.LittleEndian.AppendUint32([]byte{meetSet}, s.Number)
	met, f := p.meet(&engine.MeetArgs{Op: op, User: user, Members: s.Members, Key: binary.LittleEndian.AppendUint32(key, k)}, 1)
	a.ID = met.ID
	return a, g, f
}
