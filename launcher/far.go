// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"net"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"gompi/internal/cgroup"
	"gompi/internal/control/link"
	"gompi/internal/launch"
	"gompi/internal/launch/agent"
	"gompi/internal/launch/far"
	"gompi/internal/launch/head"
	"gompi/internal/onehost"
)

// starter starts the agent of a host, which is this program with AgentArg, and
// returns a connection with its descriptor 0. gompirun has none yet: what starts
// agents by ssh or in a Slurm allocation belongs here.
type starter func(host uint32) (net.Conn, error)

// agentArg as first argument makes gompirun the agent of a head at the other end of
// descriptor 0.
const agentArg = "--gompirun-agent"

// joinFar joins a head with an agent that start starts.
func joinFar(h *head.Head, o *launch.Options, cfg onehost.Config, start starter) error {
	const host = 0
	conn, err := start(host)
	if err != nil {
		return err
	}
	if err := (&far.Setup{Job: cfg.Job, Host: host, Options: *o}).Write(conn); err != nil {
		conn.Close()
		return fmt.Errorf("the agent of host %d: %w", host, err)
	}
	l := link.New(conn)
	agent := far.NewHost(l, [2]int{1, 2}, func(ev launch.Event) { h.Post(func() { h.Hear(ev) }) })
	server, err := onehost.NewHead(cfg, []*link.Link{l})
	if err != nil {
		conn.Close()
		return err
	}
	h.Serve(server, agent)
	l.Run()
	return nil
}

// serveAgent is the agent of a head at the other end of a connection; it returns an
// exit status.
func serveAgent(conn net.Conn) int {
	// The head passes on what is meant for the job. Caught, and not ignored, which
	// processes would inherit.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGUSR1, unix.SIGUSR2)
	inOrder, err := runAgent(conn)
	switch {
	case err != nil:
		launch.Say("agent: %v", launch.Hinted(err))
		return launch.ExitFailure
	case !inOrder:
		return launch.ExitFailure
	}
	return 0
}

func runAgent(conn net.Conn) (inOrder bool, err error) {
	defer conn.Close()
	setup, err := far.ReadSetup(conn)
	if err != nil {
		return false, err
	}
	o := &setup.Options
	l := link.New(conn)
	top := far.NewAgent(l)
	a, err := agent.New(o, setup.Job, maxProcs(o, cgroup.UsableCPUs()), top.Streams(), top.Tell, top.Post)
	if err != nil {
		return false, err
	}
	server, err := onehost.NewAgent(setup.Job, setup.Host, hostConfig(a, top.Post), l)
	if err != nil {
		return false, err
	}
	a.Serve(server)
	top.Serve(a)
	l.Run()
	inOrder = top.Run()
	l.Close()
	return inOrder, server.Close()
}
