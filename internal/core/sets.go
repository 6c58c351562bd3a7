// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"encoding/binary"

	"gompi/internal/base/fault"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/internal/engine"
)

// InSet is what the processes of a set agree on as its name is the same for all,
// for the communicator that comes with it: each of them may make it once.
func (p *Process) InSet(s wire.Set) (Agreed, Groups, string) {
	return Agreed{Op: "Open", ID: s.Context(p.Self.Job, 0), members: s.Members, hosts: s.Hosts}, Groups{Local: s.Members}, s.URI
}

// UseGiven has c, the first communicator of a set, use the memory that the members were
// given with the set. told is what this process has heard of that beside its Welcome.
// It comes once, before any call on c; where nothing was given it does nothing.
func (c *Comm) UseGiven(s wire.Set, told ...protocol.Preallocated) {
	for _, list := range [][]protocol.Preallocated{c.Proc.given, told} {
		for i := range list {
			if g := &list[i]; g.Set == s.Number && g.X.Bytes > 0 {
				c.Ctx.UseGiven(g.Set, g.Ranks, g.X)
				return
			}
		}
	}
}

// OfSet is what they agree on for the k-th communicator of the set: InSet is that of
// 0. It takes no message while there are reserved ids; later they meet, and the call
// returns on the first of them at once, on the others when that has called.
func (p *Process) OfSet(op fault.Call, user context.Context, s wire.Set, k uint32) (Agreed, Groups, *fault.Fault) {
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
