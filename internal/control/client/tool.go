// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gompi/internal/control"
	"gompi/internal/wire"
)

// JobAddr is a running job found on this host.
type JobAddr struct {
	Job  wire.JobID
	Addr string
}

// Jobs lists the jobs whose agents listen on this host, of every user and in
// no particular order.
func Jobs() ([]JobAddr, error) {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseJobs(f)
}

// parseJobs reads the kernel's table of Unix sockets: address, references,
// protocol, flags, type, state, inode, path.
func parseJobs(r io.Reader) ([]JobAddr, error) {
	const accepting = 0x10000 // flag of a socket that listens
	var jobs []JobAddr
	in := bufio.NewScanner(r)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) != 8 {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 64)
		if err != nil || flags&accepting == 0 {
			continue
		}
		job, ok := control.ParseAddress(f[7])
		if ok && !slices.ContainsFunc(jobs, func(j JobAddr) bool { return j.Job == job }) {
			jobs = append(jobs, JobAddr{job, f[7]})
		}
	}
	return jobs, in.Err()
}

// Tool is gompictl's connection to an agent. One call at a time.
type Tool struct {
	conn *socket
	in   *fdReader
	id   uint32
}

// DialTool connects to the agent at addr, which must be the caller's own
// unless the caller is root.
func DialTool(addr string) (*Tool, error) {
	conn, err := connect(addr, time.Now().Add(toolWait))
	if err != nil {
		return nil, fmt.Errorf("job at %s: %w", addr, err)
	}
	t := &Tool{conn: conn, in: newFDReader(conn)}
	if err := conn.poll(); err != nil {
		t.Close()
		return nil, fmt.Errorf("job at %s: %w", addr, err)
	}
	if _, err := conn.Write(control.AppendFrame(nil, 0, 0, &control.Empty{Kind: control.KindTool})); err != nil {
		t.Close()
		return nil, fmt.Errorf("job at %s: %w", addr, err)
	}
	return t, nil
}

// toolWait bounds every exchange of a tool, apart from what it asks the agent
// to wait.
const toolWait = 10 * time.Second

// Processes lists all processes that the job ever had.
func (t *Tool) Processes(ctx context.Context) ([]control.ProcInfo, error) {
	list, err := t.ask(ctx, &control.Empty{Kind: control.KindList}, toolWait)
	infos := make([]control.ProcInfo, len(list))
	for i := range list {
		infos[i] = list[i].ProcInfo
	}
	return infos, err
}

// Stacks collects the reports of all processes, as onehost.Server.Stacks does. They
// get wait, at most a minute, to answer.
func (t *Tool) Stacks(ctx context.Context, wait time.Duration) ([]control.StackReport, error) {
	wait = min(max(wait, 0), control.MaxCollect)
	return t.ask(ctx, &control.Collect{Wait: wait}, wait+toolWait)
}

// ask sends one request and gathers the parts of its answer. After an error
// the Tool is of no more use.
func (t *Tool) ask(ctx context.Context, m control.Message, limit time.Duration) ([]control.StackReport, error) {
	if err := t.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { t.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	t.id++
	list, err := t.exchange(m)
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return list, err
}

func (t *Tool) exchange(m control.Message) ([]control.StackReport, error) {
	if _, err := t.conn.Write(control.AppendFrame(nil, t.id, 0, m)); err != nil {
		return nil, err
	}
	var list []control.StackReport
	for {
		f, fds, err := t.in.next()
		closeFDs(fds[:])
		switch {
		case err != nil:
			return list, err
		case f.Kind == control.KindBye:
			return list, control.ByeError(f.Body)
		case f.ID != t.id:
			return list, fmt.Errorf("answer %d to request %d", f.ID, t.id)
		case f.Kind == control.KindPart:
			var part control.StackReport
			if err := control.Decode(&part, append([]byte(nil), f.Body...)); err != nil {
				return list, err
			}
			list = append(list, part)
		case f.Kind == control.KindReply:
			var r control.Reply
			if err := control.Decode(&r, f.Body); err != nil {
				return list, err
			}
			return list, r.Err()
		default:
			return list, fmt.Errorf("frame of kind %d does not belong here", f.Kind)
		}
	}
}

// Close ends the connection.
func (t *Tool) Close() error {
	t.in.close()
	return t.conn.Close()
}
