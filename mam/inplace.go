// SPDX-License-Identifier: Apache-2.0

package mam

import (
	"errors"
	"fmt"

	"gompi/internal/control/hostmem"
	"gompi/internal/resize/layout"
	"gompi/mpi"
)

// inPlace moves the arrays that lie in host memory, under any method. On a host nothing
// moves: the new owner of a range uses the same pages. Between hosts the range is sent to the
// same place of the other host's memory, where nobody has anything before the commit.
type inPlace struct {
	rc *reconfiguration
	// hostOf says whose memory each rank of the merged communicator has: one number for each
	// agent. nil: it was not needed yet.
	hostOf []uint32
}

// finish moves the arrays of a list. All call it with the same list, over the merged
// communicator.
func (m *inPlace) finish(list []*transfer) error {
	for _, x := range list {
		if x.shared == nil {
			continue
		}
		if err := m.rc.allocate(x, nil); err != nil {
			return err
		}
		if err := m.findHosts(x); err != nil {
			return err
		}
		if err := m.sendBetweenHosts(x); err != nil {
			return transferError(x, m.rc, err)
		}
		x.done = true
	}
	return nil
}

func (m *inPlace) findHosts(x *transfer) error {
	if m.hostOf != nil {
		return nil
	}
	hosts := make([]uint32, m.rc.merged.Size())
	if err := mpi.Allgather(m.rc.comm(), []uint32{x.shared.Host()}, hosts); err != nil {
		return err
	}
	m.hostOf = hosts
	return nil
}

// sendBetweenHosts sends what another host is to have, and receives what this one is to have.
func (m *inPlace) sendBetweenHosts(x *transfer) error {
	rc := m.rc
	me := rc.merged.Rank()
	bufs := rc.comm().Bufs()
	var reqs requests
	var own []hostmem.Range // writable while data arrives
	if rc.old >= 0 {
		r := x.byteRange(x.split, rc.old)
		own = append(own, r)
		memory := x.bytesAt(r)
		for p := range layout.Sends(x.split, x.nextSplit, rc.old) {
			if peer := rc.to[p.To]; m.hostOf[peer] != m.hostOf[me] {
				from := memory[p.FromAt*x.Bytes : (p.FromAt+p.Len)*x.Bytes]
				_ = steps(int64(len(from)), func(lo, hi int64) error { // it cannot fail
					reqs.add(bufs.Isend(mpi.BufOf(from[lo:hi]), peer, x.tag), hi-lo)
					return nil
				})
			}
		}
	}
	before := own
	if rc.new >= 0 {
		if err := x.shared.Own(append(own, x.byteRange(x.nextSplit, rc.new))...); err != nil {
			return errors.Join(err, rc.wait(reqs))
		}
		for p := range layout.Receives(x.split, x.nextSplit, rc.new) {
			if peer := rc.from[p.From]; m.hostOf[peer] != m.hostOf[me] {
				to := x.target[p.ToAt*x.Bytes : (p.ToAt+p.Len)*x.Bytes]
				_ = steps(int64(len(to)), func(lo, hi int64) error { // it cannot fail
					reqs.add(bufs.Irecv(mpi.BufOf(to[lo:hi]), peer, x.tag), hi-lo)
					return nil
				})
				x.received += int64(len(to))
			}
		}
	}
	return errors.Join(rc.wait(reqs), x.shared.Own(before...))
}

// settle completes the arrays of a change that was committed: a rank owns its new block
// alone, and the first target of each host gives back what no target of the host has.
func (m *inPlace) settle() (err error) {
	rc := m.rc
	for _, x := range rc.transfers {
		if x.shared == nil || rc.new < 0 {
			continue
		}
		err = errors.Join(err, x.shared.Own(x.byteRange(x.nextSplit, rc.new)))
		host := m.hostOf[rc.to[rc.new]]
		var keep []hostmem.Range
		first := rc.new
		for d, at := range rc.to {
			if m.hostOf[at] == host {
				keep, first = append(keep, x.byteRange(x.nextSplit, d)), min(first, d)
			}
		}
		if first == rc.new && len(keep) < len(rc.to) {
			err = errors.Join(err, x.shared.Punch(keep))
		}
	}
	return err
}

// fillBlock makes a rank's new block of an array memory that it may touch, before the commit.
// On a host where another rank has had the block this fills the page tables. When it works in
// pieces with pauses no new huge pages are made: for those the kernel may hold up ranks that
// compute.
func (rc *reconfiguration) fillBlock(x *transfer, limit *rateLimit) error {
	r := x.byteRange(x.nextSplit, rc.new)
	for at := r.Lo; at < r.Hi; {
		n := r.Hi - at
		if limit.pauses() {
			n = min(n, touchStepBytes)
		}
		var taken int64
		err := limit.work(func() (err error) {
			taken, err = x.shared.Fill(hostmem.Range{Lo: at, Hi: at + n})
			return err
		})
		if err != nil {
			return fmt.Errorf("mam: %q: %d bytes of %d on rank %d of %d: %w", x.Name, r.Hi-r.Lo, x.Rule.N*x.Bytes, rc.new, rc.times.ND, err)
		}
		if limit != nil {
			rc.report(int(n))
		}
		if at += n; at < r.Hi && taken > 0 { // pages that are there cost less than a tenth
			if err := limit.pause(); err != nil {
				return err
			}
		}
	}
	x.target = x.bytesAt(r)
	return nil
}

// printNotInPlace prints which data does not move in place though method InPlace was chosen.
func (m *Module) printNotInPlace() {
	carrier := methods[m.config.Method].carrier
	if carrier == Auto {
		return
	}
	var names []string
	for _, a := range m.arrays {
		if a.shared == nil && a.Rule.N > 0 {
			names = append(names, fmt.Sprintf("%q", a.Name))
		}
	}
	if len(names) > 0 {
		m.printSettings(nil, fmt.Sprintf("method %v for %v, which are in no memory of the hosts", carrier, names))
	}
}
