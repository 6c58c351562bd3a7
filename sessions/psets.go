// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gompi/internal/control/protocol"
	"gompi/mpi"
)

// canonical returns a name as it is compared: names of mpi:// without case.
func canonical(name string) string {
	const scheme = "mpi://"
	switch {
	case name == "":
		return protocol.EmptyURI
	case len(name) > len(scheme) && strings.EqualFold(name[:len(scheme)], scheme):
		return scheme + strings.ToUpper(name[len(scheme):])
	}
	return name
}

// NumPSets returns how many process sets the session has seen. First come mpi://WORLD,
// mpi://SELF and, in a spawned process, mpi://PARENT. Then come the sets that the job has
// announced, in that order: named sets (app://, gompi://host/), sets with the calling
// process, and the outputs of changes of these. A set keeps its number and name when it is
// gone; its use is then ErrSetGone. gompi://main and gompi://empty are not in the list.
// Local, but for one round trip to the head. Error: ErrSession. MPI 4.1 section 11.3.2.
func (s *Session) NumPSets() (_ int, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.refresh("NumPSets")
	return len(s.list), err
}

// PSet returns the name of the n-th process set: see NumPSets. Local. Errors: mpi.ErrArg,
// ErrSession. MPI 4.1 section 11.3.2.
func (s *Session) PSet(n int) (_ string, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.list) {
		if err := s.refresh("PSet"); err != nil {
			return "", err
		}
	}
	if err := s.open("PSet"); err != nil {
		return "", err
	}
	if n < 0 || n >= len(s.list) {
		return "", s.fail(mpi.ErrArg, "PSet", fmt.Errorf("process set %d of %d", n, len(s.list)))
	}
	return s.list[n], nil
}

// PSets returns the names of all process sets by number: see NumPSets. Local. Error:
// ErrSession.
func (s *Session) PSets() (_ []string, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh("PSets"); err != nil {
		return nil, err
	}
	return slices.Clone(s.list), nil
}

// refresh appends the sets that are new; mu is held.
func (s *Session) refresh(op string) error {
	if err := s.open(op); err != nil {
		return err
	}
	if s.list == nil {
		list := []string{protocol.WorldURI, protocol.SelfURI}
		switch _, err := s.find(op, protocol.ParentURI); {
		case err == nil:
			list = append(list, protocol.ParentURI)
		case !errors.Is(err, mpi.ErrSet):
			return err
		}
		s.list = list
	}
	for {
		var b protocol.NewsBody
		if err := s.process().Control.Ask(s.ctx, &protocol.News{Since: s.since}, &b); err != nil {
			return s.fail(classOf(err), op, detailOf(err))
		}
		for _, n := range b.Sets {
			s.list = append(s.list, n.Name)
		}
		if s.since = b.Next; !b.More {
			return nil
		}
	}
}

// seen reports whether a name is in the list; mu is held.
func (s *Session) seen(name string) bool { return slices.Contains(s.list, name) }

// Name returns the own name of a process set, gompi://JOB/N, which never changes. The
// session holds the set. Local. Errors: ErrSet, ErrSetGone, ErrSession.
func (s *Session) Name(set string) (_ string, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if set = canonical(set); set == protocol.EmptyURI {
		return set, s.open("Name")
	}
	h, err := s.find("Name", set)
	if err != nil {
		return "", err
	}
	return h.set.URI, nil
}

// Main returns the name of the set that gompi://main stands for now. Local. Error:
// ErrSession.
func (s *Session) Main() (_ string, err error) {
	defer s.raise(&err)
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find("Main", protocol.MainURI)
	if err != nil {
		return "", err
	}
	return h.set.URI, nil
}

// SetMain makes a set the job's main set. gompi://main stands for it from then on, and
// for the Results of its changes; requests for another size of the job mean it.
//
// Any process that is in the set, or has looked it up, may call it. Local, but for one
// round trip to the head. Of several calls the last one at the head counts. A set of an
// undecided change becomes the main set when the change is committed, and does not if it is
// rolled back.
//
// Errors: ErrSetGone if no process holds the set any more, or its change was rolled back;
// ErrSet, ErrSession.
func (s *Session) SetMain(name string) (err error) {
	defer s.raise(&err)
	const op = "SetMain"
	name = canonical(name)
	if name == protocol.EmptyURI {
		return s.fail(mpi.ErrSet, op, errors.New("the main set cannot be empty"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.find(op, name)
	if err != nil {
		return err
	}
	m := &protocol.Set{Kind: protocol.KindMain, Number: h.set.Number}
	if err := s.process().Control.Ask(s.ctx, m, &protocol.Empty{Kind: protocol.KindReply}); err != nil {
		return s.fail(classOf(err), op, detailOf(err))
	}
	return nil
}
