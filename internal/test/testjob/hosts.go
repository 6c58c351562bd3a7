// SPDX-License-Identifier: Apache-2.0

package testjob

import (
	"fmt"
	"net"
	"time"

	"gompi/internal/control/link"
	"gompi/internal/control/protocol"
	"gompi/internal/control/server"
)

// serveHosts starts the head of a job and the agents of its hosts, with a connection to each.
func (j *Job) serveHosts(sc server.Config) {
	sc.HostSlots = j.cfg.slots
	for i := range j.cfg.slots {
		sc.HostNames = append(sc.HostNames, fmt.Sprintf("host-%d", i))
	}
	heads, links := make([]*link.Link, len(j.cfg.slots)), make([]*link.Link, len(j.cfg.slots))
	for i := range heads {
		ours, theirs := net.Pipe()
		heads[i], links[i] = link.New(ours), link.New(theirs)
	}
	var err error
	if j.Server, err = server.NewHead(sc, heads); err != nil {
		j.tb.Fatal(err)
	}
	for i, l := range links {
		a, err := server.NewAgent(j.id, uint32(i), server.HostConfig{}, l)
		if err != nil {
			j.tb.Fatal(err)
		}
		j.agents = append(j.agents, a)
		heads[i].Run()
		l.Run()
	}
	j.tb.Cleanup(func() {
		for i, a := range j.agents {
			a.Close()
			links[i].Close()
			heads[i].Close()
		}
		j.Server.Close()
	})
}

// tokenWait limits the time until an agent knows a process that is to start.
const tokenWait = 10 * time.Second

// token waits until the agent knows a process, and returns the process's token.
func (j *Job) token(sp protocol.StartProc) (string, error) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(tokenWait); ; {
		if token := j.agents[sp.Host].Token(sp.Proc); token != "" || len(j.agents) == 1 {
			return token, nil
		}
		if time.Now().After(end) {
			return "", fmt.Errorf("the agent of host %d does not know process %v", sp.Host, sp.Proc)
		}
		<-tick.C
	}
}
