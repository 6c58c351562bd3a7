// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gompi/mpi"
)

// server serves any number of clients at a time, each on a goroutine of its own.
type server struct {
	process *mpi.Process
	name    string
	idle    time.Duration

	clients sync.WaitGroup
	now     atomic.Int32 // clients that it has
}

// run serves until nobody has come for a while.
func (s *server) run(ctx context.Context) error {
	port, err := s.process.OpenPort()
	if err != nil {
		return err
	}
	if err := s.publish(ctx, port); err != nil {
		return err
	}
	fmt.Printf("server %d: serves as %s at %s\n", os.Getpid(), s.name, port)
	err = s.accept(ctx, port)
	// From here on a lookup does not find the name, and a Connect finds nobody at the port.
	err = errors.Join(err, s.process.UnpublishName(s.name, port), s.process.ClosePort(port))
	s.clients.Wait()
	return err
}

// publish waits until the name is free: another server may have it.
func (s *server) publish(ctx context.Context, port string) error {
	for {
		err := s.process.PublishName(s.name, port)
		if !errors.Is(err, mpi.ErrService) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// accept takes clients until it has none for a while.
func (s *server) accept(ctx context.Context, port string) error {
	for {
		limited, cancel := context.WithTimeout(ctx, s.idle)
		comm, err := s.process.Self().WithContext(limited).Accept(port, 0)
		late := limited.Err() != nil
		cancel()
		switch {
		case err == nil:
			s.now.Add(1)
			fmt.Printf("server %d: a client comes\n", os.Getpid())
			s.clients.Go(func() {
				s.serve(comm.WithContext(ctx))
				s.now.Add(-1)
			})
		case !late || ctx.Err() != nil:
			return err
		case s.now.Load() == 0:
			return nil
		}
	}
}

// serve sorts for one client until it has no more, or is no more.
func (s *server) serve(client *mpi.Comm) {
	answers := 0
	for {
		numbers, st, err := mpi.RecvNew[float64](client, 0, mpi.AnyTag)
		if err == nil && st.Tag == tagBye {
			fmt.Printf("server %d: a client leaves after %d answers\n", os.Getpid(), answers)
			break
		}
		if err == nil {
			slices.Sort(numbers)
			err = mpi.Send(client, numbers, 0, tagSorted)
		}
		if err != nil {
			fmt.Printf("server %d: a client is lost after %d answers: %v\n", os.Getpid(), answers, err)
			break
		}
		answers++
	}
	client.Free()
}
