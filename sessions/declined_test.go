// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gompi/internal/test/scenes"
	"gompi/mpi"
	"gompi/sessions"
)

// declineScenes are programs in which a process takes no part in a change.
var declineScenes = []scenes.Scene{
	{Name: "declined", Ranks: 3, Run: declined, Declines: true},
	{Name: "bound", Ranks: 2, Run: bound},
}

func TestDeclineScenes(t *testing.T) { scenes.Run(t, declineScenes) }

var errNoRoom = errors.New("no room")

// decline is a change of which one process declines its part.
type decline struct {
	ask   sessions.Request
	rank  int  // of the process
	early bool // others vote before
	names string
}

// Instead of a rank.
const (
	byNewcomer = -1
	byNobody   = -2
)

// declines are changes, one after the other.
var declines = []decline{
	{ask: sessions.Request{Kind: sessions.Grow, Add: []int{1}}, rank: 1, names: "rank 1"},
	{ask: sessions.Request{Kind: sessions.Shrink, Ranks: []int{2}}, rank: 2, names: "rank 2"},
	{ask: sessions.Request{Kind: sessions.Shrink, Ranks: []int{2}}, rank: 0, early: true, names: "rank 0"},
	{ask: sessions.Request{Kind: sessions.Grow, Add: []int{1}}, rank: byNewcomer, names: "new.0"},
	{ask: sessions.Request{Kind: sessions.Replace, Ranks: []int{2}, Add: []int{2}}, rank: 0, names: "rank 0"},
	{ask: sessions.Request{Kind: sessions.Grow, Add: []int{1}}, rank: byNobody},
}

// declined is a program in which processes decline changes: all others find at once that
// they do not happen.
func declined(ctx context.Context, world *mpi.Comm) error {
	s, err := sessions.Open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	const key = "round"
	if c, err := sessions.Joined(ctx); err != nil || c != nil {
		if err != nil {
			return err
		}
		store, err := s.Store(c.Input)
		if err != nil {
			return err
		}
		v, err := store.Get(ctx, true, key)
		if err != nil {
			return err
		}
		round, err := strconv.Atoi(string(v[0]))
		if err == nil && declines[round].rank == byNewcomer {
			if err = c.Decline(errNoRoom); !errors.Is(err, sessions.ErrRolledBack) || !errors.Is(err, errNoRoom) {
				return fmt.Errorf("Decline of a newcomer: %w", err)
			}
			return err
		}
		if err == nil {
			_, err = c.Commit(ctx)
		}
		return err
	}
	main, err := s.Main()
	if err != nil {
		return err
	}
	w, err := sessions.Watch(ctx, main, sessions.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	store, err := s.Store(main)
	if err != nil {
		return err
	}
	i, rank := 0, world.Rank()
	for round := range declines {
		d := &declines[round]
		var op *sessions.Operation
		if rank == 0 {
			ask := d.ask
			ask.In = []string{main}
			if err := store.Put(key, []byte(strconv.Itoa(round))); err != nil {
				return err
			}
			if op, err = sessions.Submit(ctx, ask); err != nil {
				return err
			}
		}
		for over := false; !over; i++ { // who comes late is not handed it
			c, err := w.Check(i)
			if err != nil {
				return err
			}
			if c != nil {
				if err := d.adopt(ctx, c, rank); err != nil || d.rank == byNobody {
					return err
				}
			}
			if over, err = mpi.BcastOne(world, op != nil && op.State() > sessions.Done, 0); err != nil {
				return err
			}
		}
		if op == nil {
			continue
		}
		x, err := op.Decided(ctx)
		if op.Free(); err != nil {
			return err
		}
		want, told := "a process declines the change: "+d.names+": no room", fmt.Sprint(x.Err)
		// The end of a newcomer that is a goroutine may be known before its last word.
		died := d.rank == byNewcomer && strings.Contains(told, "a process of the change died: new.0: was killed")
		if x.State != sessions.RolledBack || !strings.HasSuffix(told, want) && !died {
			return fmt.Errorf("round %d: %v %v, want %q", round, x.State, x.Err, want)
		}
	}
	return errors.New("the last change was not handed out")
}

// adopt is what a member does with the change that it was handed.
func (d *decline) adopt(ctx context.Context, c *sessions.Change, rank int) error {
	began := time.Now()
	if rank == d.rank {
		if d.early {
			time.Sleep(5 * time.Millisecond) //archtest:sleep the others vote
		}
		for range 2 {
			if err := c.Decline(errNoRoom); err != nil {
				return fmt.Errorf("Decline: %w", err)
			}
		}
	}
	_, err := c.Commit(ctx)
	if d.rank == byNobody {
		return errors.Join(err, c.Decline(errNoRoom)) // it is over
	}
	if !errors.Is(err, sessions.ErrRolledBack) || !errors.Is(c.Decline(nil), sessions.ErrRolledBack) {
		return fmt.Errorf("Commit of what %s declines: %v", d.names, err)
	}
	if took := time.Since(began); took > 20*time.Second { // the deadline is a minute
		return fmt.Errorf("the roll-back has taken %v", took)
	}
	return nil
}

// bound is a program in which a vote binds who has cast it: Decline does nothing then.
func bound(ctx context.Context, world *mpi.Comm) error {
	if c, err := sessions.Joined(ctx); err != nil || c != nil {
		if err == nil {
			_, err = c.Commit(ctx)
		}
		return err
	}
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{})
	if err != nil {
		return err
	}
	defer w.Close()
	if world.Rank() == 0 {
		op, err := sessions.Submit(ctx, sessions.Request{Kind: sessions.Grow, In: []string{"gompi://main"}, Add: []int{1}})
		if err != nil {
			return err
		}
		defer op.Free()
	}
	var c *sessions.Change
	for i := 0; c == nil; i++ {
		if c, err = w.Check(i); err == nil && c == nil {
			err = world.Barrier()
		}
		if err != nil {
			return err
		}
	}
	if world.Rank() == 0 {
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := c.Commit(soon); !errors.Is(err, mpi.ErrCancelled) { // the vote stands
			return fmt.Errorf("Commit of a context that ends: %w", err)
		}
		if err := c.Decline(errNoRoom); err != nil {
			return err
		}
	}
	if err := world.Barrier(); err != nil {
		return err
	}
	_, err = c.Commit(ctx)
	return err
}
