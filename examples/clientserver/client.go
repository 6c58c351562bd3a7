// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gompi/mpi"
)

// client has numbers sorted by whichever server there is.
type client struct {
	process  *mpi.Process
	name     string
	port     string // "": that of the name
	patience time.Duration

	server *mpi.Comm // nil: it has none
	lost   int       // servers that are no more
}

// run asks so often, with a rest after each answer.
func (c *client) run(ctx context.Context, requests, numbers int, pause time.Duration) error {
	random := rand.New(rand.NewPCG(1, uint64(os.Getpid())))
	for answers := 0; answers < requests; {
		if c.server == nil {
			if err := c.connect(ctx); err != nil {
				return err
			}
		}
		list := make([]float64, numbers)
		for i := range list {
			list[i] = random.NormFloat64()
		}
		switch err := c.ask(list); {
		case gone(err): // the question is asked again, of another
			c.lost++
			c.server.Free()
			c.server = nil
		case err != nil:
			return err
		case !slices.IsSorted(list):
			return errors.New("the answer is not sorted")
		default:
			answers++
			time.Sleep(pause)
		}
	}
	if c.server != nil {
		// Should the server be lost just now the work is done all the same.
		if err := mpi.Send(c.server, []float64{}, 0, tagBye); err != nil && !gone(err) {
			return err
		}
		c.server.Free()
	}
	_, err := fmt.Printf("client %d: %d answers, %d servers lost\n", os.Getpid(), requests, c.lost)
	return err
}

// connect looks for a server and connects to it, again and again: it may come later, and
// one that is found may be gone before it answers.
func (c *client) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	self := c.process.Self().WithContext(limited)
	var why error // why the last server that it tried was not there
	for {
		port, err := c.port, error(nil)
		if port == "" {
			port, err = c.process.LookupName(c.name)
		}
		if err == nil {
			c.server, err = self.Connect(port, 0)
		}
		switch {
		case err == nil:
			fmt.Printf("client %d: is connected\n", os.Getpid())
			return nil
		case gone(err):
			why = err
		case !errors.Is(err, mpi.ErrCancelled) || ctx.Err() != nil:
			return err
		case why == nil: // patience ended within the first try
			why = err
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("no server is at %s: %w", cmp.Or(c.port, c.name), why)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ask has a list sorted.
func (c *client) ask(list []float64) error {
	if err := mpi.Send(c.server, list, 0, tagSort); err != nil {
		return err
	}
	_, err := mpi.Recv(c.server, list, 0, tagSorted)
	return err
}
