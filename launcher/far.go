// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"fmt"
	"net"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
	"gompi/internal/host/cgroup"
	"gompi/internal/launch"
	"gompi/internal/launch/far"
	"gompi/internal/launch/spawner"
	"gompi/internal/launch/supervisor"
)

// starter starts the agent of a host, which is this program with AgentArg, and
// returns a connection with its descriptor 0. gompirun has none yet: what starts
// agents by ssh or in a Slurm allocation belongs here.
type starter func(host uint32) (net.Conn, error)

// agentArg as first argument makes gompirun the agent of a head at the other end of
// descriptor 0.
const agentArg = "--gompirun-agent"

// joinFar joins a head with the agents of n hosts, which start starts, and returns its
// half of the control plane.
func joinFar(h *supervisor.Supervisor, o *launch.Options, cfg server.Config, n int, start starter) (srv *server.Server, err error) {
	var conns []net.Conn
	defer func() {
		if err != nil {
			for _, c := range conns {
				c.Close()
			}
		}
	}()
	for range n {
		conn, err := start(uint32(len(conns)))
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
	}
	hear := func(host uint32) func(launch.Event) {
		return func(ev launch.Event) { h.Post(func() { h.HandleEvent(host, ev) }) }
	}
	out, in := far.NewOutput([2]int{1, 2}, hear(0)), far.NewInput(os.Stdin)
	links, agents := make([]*link.Link, n), make([]launch.Host, n)
	for i, conn := range conns {
		host := uint32(i)
		if err := (&far.Setup{Job: cfg.Job, Host: host, Options: *o}).Write(conn); err != nil {
			return nil, fmt.Errorf("the agent of host %d: %w", host, err)
		}
		links[i] = link.New(conn)
		agents[i] = far.NewHost(links[i], out, in, hear(host))
	}
	if srv, err = server.NewHead(cfg, links); err != nil {
		return nil, err
	}
	h.Serve(srv, agents...)
	for _, l := range links {
		l.Run()
	}
	return srv, nil
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
		launch.Say("agent: %v", protocol.Hinted(err))
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
	top := far.NewReceiver(l)
	a, err := spawner.New(o, setup.Job, maxProcs(o, cgroup.UsableCPUs()), top.Streams(), top.Tell, top.Post)
	if err != nil {
		return false, err
	}
	srv, err := server.NewAgent(setup.Job, setup.Host, hostConfig(a, top.Post), l)
	if err != nil {
		return false, err
	}
	a.Serve(srv)
	top.Serve(a)
	l.Run()
	inOrder = top.Run()
	l.Close()
	return inOrder, srv.Close()
}
