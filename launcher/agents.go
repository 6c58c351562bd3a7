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

// starter starts the agent of a host, which is this program with agentArg, and returns a
// connection to its descriptor 0. gompirun has none for other hosts yet: ssh or a Slurm
// allocation would go here.
type starter func(host uint32) (net.Conn, error)

// agentArg as the first argument makes gompirun the agent of a host; its supervisor is at
// the other end of descriptor 0.
const agentArg = "--gompirun-agent"

// connectAgents connects a supervisor with the agents of n hosts, which start starts, and
// returns the control plane.
func connectAgents(sup *supervisor.Supervisor, o *launch.Options, cfg server.Config, n int, start starter) (srv *server.Server, err error) {
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
	tell := func(host uint32) func(launch.Event) {
		return func(ev launch.Event) { sup.Post(func() { sup.HandleEvent(host, ev) }) }
	}
	out, in := far.NewOutput([2]int{1, 2}, tell(0)), far.NewInput(os.Stdin)
	links, agents := make([]*link.Link, n), make([]launch.Host, n)
	for i, conn := range conns {
		host := uint32(i)
		if err := (&far.Setup{Job: cfg.Job, Host: host, Options: *o}).Write(conn); err != nil {
			return nil, fmt.Errorf("the agent of host %d: %w", host, err)
		}
		links[i] = link.New(conn)
		agents[i] = far.NewHost(links[i], out, in, tell(host))
	}
	if srv, err = server.NewHead(cfg, links); err != nil {
		return nil, err
	}
	sup.Serve(srv, agents...)
	for _, l := range links {
		l.Run()
	}
	return srv, nil
}

// serveAgent runs the agent at the end of a connection; it returns an exit status.
func serveAgent(conn net.Conn) int {
	// The supervisor passes on the signals for the job. They are caught, not ignored, as
	// processes would inherit that.
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
	receiver := far.NewReceiver(l)
	a, err := spawner.New(o, setup.Job, maxProcs(o, cgroup.UsableCPUs()), receiver.Streams(), receiver.Tell, receiver.Post)
	if err != nil {
		return false, err
	}
	srv, err := server.NewAgent(setup.Job, setup.Host, hostConfig(a, receiver.Post), l)
	if err != nil {
		return false, err
	}
	a.Serve(srv)
	receiver.Serve(a)
	l.Run()
	inOrder = receiver.Run()
	l.Close()
	return inOrder, srv.Close()
}
