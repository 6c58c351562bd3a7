// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"strconv"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// Info describes a process set.
type Info struct {
	Size     int
	Dynamic  bool // it came of a change, or a process follows its changes
	Included bool // the calling process is a member
	Primary  bool // the calling process is the first living member
	Hosts    int  // of its members, also of those that have ended; 0: not known
	// Died and Left are the ranks of members that have died, or have finalized.
	Died, Left []int
}

// Hints returns i under the keys of MPI: mpi_size, mpi_dyn, mpi_included and mpi_primary.
// Local.
// MPI 4.1 section 11.3.2.
func (i Info) Hints() *mpi.Info {
	yes := map[bool]string{true: "True", false: "False"}
	return mpi.NewInfo("mpi_size", strconv.Itoa(i.Size), "mpi_dyn", yes[i.Dynamic], "mpi_included", yes[i.Included], "mpi_primary", yes[i.Primary])
}

// hostsIn counts the hosts of a set; 0: the host of a member is not known.
func hostsIn(s *wire.Set) int {
	on := map[uint32]bool{}
	for _, r := range s.Hosts {
		on[r.Host] = true
	}
	if on[wire.NoHost] {
		return 0
	}
	return len(on)
}

// Info describes a process set as it is now. Local, but for one round trip to the head.
// Errors: ErrSet, ErrSetGone, ErrSession. MPI 4.1 section 11.3.2.
func (s *Session) Info(name string) (_ Info, err error) {
	defer s.raise(&err)
	const op = "Info"
	s.mu.Lock()
	defer s.mu.Unlock()
	if name = canonical(name); name == protocol.EmptyURI {
		return Info{}, s.open(op)
	}
	h, err := s.find(op, name)
	if err != nil {
		return Info{}, err
	}
	var b protocol.DescribeBody
	if err := s.process().Control.Ask(s.ctx, &protocol.Set{Kind: protocol.KindDescribe, Number: h.set.Number}, &b); err != nil {
		return Info{}, s.fail(classOf(err), op, detailOf(err))
	}
	m := h.set.Members
	i := Info{Size: m.Len(), Dynamic: b.Dynamic}
	for _, id := range b.Died.All() {
		i.Died = append(i.Died, m.Index(id))
	}
	for _, id := range b.Left.All() {
		i.Left = append(i.Left, m.Index(id))
	}
	i.Hosts = hostsIn(&h.set)
	self := s.process().Self
	i.Included = m.Index(self) >= 0
	for _, id := range m.All() {
		if b.Died.Index(id) < 0 && b.Left.Index(id) < 0 {
			i.Primary = id == self
			break
		}
	}
	return i, nil
}
