// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"testing"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
)

// dppScenes are programs for the interface of DPP.
var dppScenes = []scenes.Scene{
	{Name: "grow", Ranks: 2, Run: func(ctx context.Context, world *mpi.Comm) error { return new(dppLoop).run(ctx) }},
	{Name: "replace", Ranks: 3, Run: func(ctx context.Context, world *mpi.Comm) error { return new(dmr).run(ctx) }},
	{Name: "replace-held", Ranks: 3, Run: func(ctx context.Context, world *mpi.Comm) error { return (&dmr{held: true}).run(ctx) }},
	{Name: "algebra", Ranks: 4, Run: dppAlgebra},
	{Name: "plain", Ranks: 3, Run: dppPlain},
	{Name: "sized", Ranks: 2, Run: dppOld(dppSized)},
	{Name: "beside", Ranks: 4, Run: dppOld(dppBeside)},
	{Name: "again", Ranks: 3, Run: dppOld(dppAgain)},
	{Name: "past", Ranks: 2, Run: dppPast},
	{Name: "undone", Ranks: 2, Run: dppOld(dppUndone)},
	{Name: "undone-beside", Ranks: 2, Run: dppOld(dppUndoneBeside)},
}

func TestDPP(t *testing.T) { scenes.Run(t, dppScenes) }

const worldSet = "mpi://WORLD"

// hint is one of the keys of MPI_Session_get_pset_info.
func hint(s *sessions.Session, set, key string) (bool, error) {
	i, err := s.Info(set)
	return i.Hints().Get(key) == "True", err
}

// publish is MPI_Session_set_pset_data.
func publish(s *sessions.Session, set, key, value string) error {
	store, err := s.Store(set)
	if err != nil {
		return err
	}
	return store.Put(key, []byte(value))
}

// lookup is MPI_Session_get_pset_data, which waits.
func lookup(ctx context.Context, s *sessions.Session, coll, set, key string) (string, error) {
	store, err := s.Store(set)
	if err != nil {
		return "", err
	}
	v, err := store.GetBy(ctx, coll, true, key)
	if err != nil {
		return "", err
	}
	return string(v[0]), nil
}

// commOf is MPI_Group_from_session_pset and MPI_Comm_create_from_group.
func commOf(ctx context.Context, s *sessions.Session, set string) (*mpi.Comm, error) {
	g, err := s.Group(set)
	if err != nil {
		return nil, err
	}
	return mpi.CommFromGroup(g.WithContext(ctx), "mpi.forum.example")
}
