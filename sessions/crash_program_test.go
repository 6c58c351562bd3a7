// SPDX-License-Identifier: Apache-2.0

package sessions_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"gompi/internal/control/protocol"
	"gompi/mpi"
	"gompi/sessions"
)

// struckGate is the environment's name of the socket of the test that says when a
// process goes on.
const struckGate = "STRUCK_GATE"

// gated is a process that stops at each point until the test lets it go.
type gated struct {
	conn net.Conn
	in   *bufio.Scanner
}

func newGated() *gated {
	conn, err := net.Dial("unix", os.Getenv(struckGate))
	if err != nil {
		panic(err)
	}
	return &gated{conn, bufio.NewScanner(conn)}
}

// at stops, and returns what the test says.
func (g *gated) at(who, point string) string {
	fmt.Fprintln(g.conn, os.Getpid(), os.Getppid(), os.Getenv(protocol.EnvAddr), who, point)
	if !g.in.Scan() {
		os.Exit(0) // the test is over
	}
	return g.in.Text()
}

// struckKinds are the changes that are struck, of the main set.
var struckKinds = map[string]sessions.Request{
	"add":     {Kind: sessions.Add, Add: []int{1}},
	"sub":     {Kind: sessions.Sub, Sub: 1},
	"grow":    {Kind: sessions.Grow, Add: []int{1}},
	"shrink":  {Kind: sessions.Shrink, Sub: 1},
	"replace": {Kind: sessions.Replace, Add: []int{1}, Sub: 1},
	"multi":   {Kind: sessions.Multi, Parts: []sessions.Request{{Kind: sessions.Grow, Add: []int{1}}, {Kind: sessions.Add, Add: []int{1}}}},
}

// struckProgram is a rank of a job of four: three are the main set and follow its
// changes, the fourth asks for one.
func struckProgram() {
	g := newGated()
	g.at("process", "start")
	mpi.Main(func(ctx context.Context, world *mpi.Comm) error {
		c, err := sessions.Joined(ctx)
		switch {
		case err != nil:
			return err
		case c != nil:
			return g.newcomer(ctx, c)
		}
		s, err := sessions.Open(ctx)
		if err != nil {
			return err
		}
		if err := s.SetMain("app://three"); err != nil {
			return err
		}
		if world.Rank() == 3 {
			return g.asks(ctx)
		}
		return g.follow(ctx, fmt.Sprint(world.Rank()))
	})
}

func (g *gated) newcomer(ctx context.Context, c *sessions.Change) error {
	g.at("newcomer", "joined")
	if err := c.Ready(); err != nil {
		return err
	}
	if _, err := c.Commit(ctx); err != nil {
		return err
	}
	g.at("newcomer", "in")
	if c.Result == "" { // of an Add: it is in no set that changes
		<-ctx.Done()
		return nil
	}
	return g.follow(ctx, "newcomer")
}

// asks submits what the test says.
func (g *gated) asks(ctx context.Context) error {
	for {
		r, ok := struckKinds[strings.TrimPrefix(g.at("3", "asks"), "ask ")]
		if !ok {
			continue
		}
		r.In = []string{"gompi://main"}
		if r.Kind == sessions.Multi {
			r.In, r.Parts[0].In = nil, r.In
		}
		if _, err := sessions.Submit(ctx, r); err != nil {
			return err
		}
	}
}

// follow adopts changes until it leaves.
func (g *gated) follow(ctx context.Context, who string) error {
	w, err := sessions.Watch(ctx, "gompi://main", sessions.Options{Prepare: true, Hold: true})
	if err != nil {
		return err
	}
	go func() { // a layer that has nothing to move
		layer := newGated()
		for {
			c, err := w.Coming(ctx)
			if err != nil {
				if !errors.Is(err, sessions.ErrSession) && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "Coming:", err)
				}
				return
			}
			layer.at(who, "coming")
			w.Release(c)
		}
	}()
	for {
		g.at(who, "loop")
		c, err := w.Check(sessions.Now)
		if err != nil {
			return err
		}
		if c == nil {
			<-time.After(time.Millisecond)
			continue
		}
		g.at(who, "handed")
		switch _, err := c.Commit(ctx); {
		case errors.Is(err, sessions.ErrLeaving):
			g.at(who, "left")
			return err
		case err != nil && !errors.Is(err, sessions.ErrRolledBack):
			return err
		}
	}
}
