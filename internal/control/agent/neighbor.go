// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net"
	"time"

	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// greeting is the first frame of another job's head.
type greeting struct{ protocol.Greet }

func (*greeting) Error() string { return "another head has called" }

// handOver lets go of a connection that is no process's and no tool's.
func (l *Listener) handOver(p *peer, m *protocol.Greet) {
	p.shut("", false)
	<-p.written
	l.cfg.Step.Lock()
	delete(l.conns, p)
	l.cfg.Step.Unlock()
	if p.conn.SetDeadline(time.Time{}) != nil { // it is closed
		return
	}
	l.cfg.Neighbor(p.conn, m)
}

// Call connects to the agent of another job on this host, which must be of the same user,
// or of root.
func Call(ctx context.Context, job wire.JobID) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", protocol.Address(job, 0))
	if err != nil {
		return nil, err
	}
	if err := protocol.CheckOwnerOf(conn.(*net.UnixConn), false); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
