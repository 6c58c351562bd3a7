// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"gompi/internal/base/version"
	"gompi/internal/base/wire"
	"gompi/internal/control/protocol"
)

// JobAddr is a running job found on this host.
type JobAddr struct {
	Job  wire.JobID
	Addr string
}

// Jobs lists the jobs whose agents listen on this host, of every user and in
// no particular order.
func Jobs() ([]JobAddr, error) {
	addrs, err := protocol.ListenAddresses()
	return jobsOf(addrs), err
}

// jobsOf returns the jobs of addresses, each once.
func jobsOf(addrs []string) []JobAddr {
	var jobs []JobAddr
	for _, addr := range addrs {
		job, ok := protocol.ParseAddress(addr)
		if ok && !slices.ContainsFunc(jobs, func(j JobAddr) bool { return j.Job == job }) {
			jobs = append(jobs, JobAddr{job, addr})
		}
	}
	return jobs
}

// Tool is gompictl's connection to an agent. One call at a time.
type Tool struct {
	conn *socket
	in   *fdReader
	id   uint32
}

// DialTool connects to the agent at addr. Unless the caller is root, the agent must belong to the
// caller or to root; else the error is a *protocol.OwnerError, and nothing was sent. DialTool waits
// for room in the agent's backlog until ctx is done, and no longer than ten seconds.
func DialTool(ctx context.Context, addr string) (*Tool, error) {
	conn, err := connect(ctx, addr, true, time.Now().Add(toolWait))
	if err != nil {
		return nil, fmt.Errorf("job at %s: %w", addr, err)
	}
	t := &Tool{conn: conn, in: newFDReader(conn)}
	if _, err := conn.Write(protocol.ShortFrame(0, 0, &protocol.Tool{Version: version.Gompi()})); err != nil {
		t.Close()
		return nil, fmt.Errorf("job at %s: %w", addr, err)
	}
	return t, nil
}

// toolWait bounds every exchange of a tool, beside the time that it asks the agent to wait.
const toolWait = 10 * time.Second

// Processes lists all processes that the job ever had.
func (t *Tool) Processes(ctx context.Context) ([]protocol.ProcInfo, error) {
	list, err := list[protocol.StackReport](ctx, t, &protocol.Empty{Kind: protocol.KindList}, toolWait)
	infos := make([]protocol.ProcInfo, len(list))
	for i := range list {
		infos[i] = list[i].ProcInfo
	}
	return infos, err
}

// Stacks collects the reports of all processes, as server.Server.Stacks does. wait, at most a minute,
// is how long processes may take to answer.
func (t *Tool) Stacks(ctx context.Context, wait time.Duration) ([]protocol.StackReport, error) {
	wait = min(max(wait, 0), protocol.MaxCollect)
	return list[protocol.StackReport](ctx, t, &protocol.Collect{Wait: wait}, wait+toolWait)
}

// Resize asks for another size of a set. It calls news with each state that the change reaches, also
// more than once with the same state, until the change is over; with m.Detach once. Only ctx bounds
// how long that takes. A change that was refused or rolled back is no error, and news gets it.
func (t *Tool) Resize(ctx context.Context, m *protocol.Resize, news func(*protocol.OpReport)) error {
	limit := time.Duration(0)
	if m.Detach {
		limit = toolWait
	}
	return t.ask(ctx, m, limit, func(body []byte) error {
		var r protocol.OpReport
		err := protocol.Decode(&r, body)
		if err == nil {
			news(&r)
		}
		return err
	})
}

// Break withdraws an operation that is not decided, also one that was delivered to members. It
// returns how the operation ended, which may have been before. The error says that the job knows no
// such operation.
func (t *Tool) Break(ctx context.Context, number uint32) (*protocol.OpReport, error) {
	list, err := list[protocol.OpReport](ctx, t, &protocol.Op{Kind: protocol.KindBreak, Op: number}, toolWait)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

// Ops lists the operations that are under way and the latest ones that are over, by number.
func (t *Tool) Ops(ctx context.Context) ([]protocol.OpReport, error) {
	return list[protocol.OpReport](ctx, t, &protocol.Empty{Kind: protocol.KindOps}, toolWait)
}

// Sets lists the process sets that some process holds, by number.
func (t *Tool) Sets(ctx context.Context) ([]protocol.SetReport, error) {
	return list[protocol.SetReport](ctx, t, &protocol.Empty{Kind: protocol.KindSets}, toolWait)
}

// Used returns what each process uses, and at most one blocking call of each, without disturbing the
// processes. Spares are the last.
func (t *Tool) Used(ctx context.Context) ([]protocol.StackReport, error) {
	return list[protocol.StackReport](ctx, t, &protocol.Empty{Kind: protocol.KindUsed}, toolWait)
}

// list gathers the parts of an answer.
func list[T any, P interface {
	*T
	protocol.Message
}](ctx context.Context, t *Tool, m protocol.Message, limit time.Duration) ([]T, error) {
	var all []T
	err := t.ask(ctx, m, limit, func(body []byte) error {
		all = append(all, *new(T))
		return protocol.Decode(P(&all[len(all)-1]), body)
	})
	return all, err
}

// ask sends one request and passes on the parts of its answer, whose bytes the callee owns. Limit 0
// is no limit. After an error the Tool cannot be used any more.
func (t *Tool) ask(ctx context.Context, m protocol.Message, limit time.Duration, part func(body []byte) error) error {
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	if err := t.conn.SetDeadline(end); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { t.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	t.id++
	err := t.exchange(m, part)
	if ctx.Err() != nil && err != nil {
		err = ctx.Err()
	}
	return err
}

func (t *Tool) exchange(m protocol.Message, part func(body []byte) error) error {
	frame, err := protocol.AppendFrame(nil, t.id, 0, m)
	if err != nil {
		return err
	}
	if _, err := t.conn.Write(frame); err != nil {
		return err
	}
	for {
		f, fds, err := t.in.next()
		protocol.CloseFiles(fds[:]...)
		switch {
		case err != nil:
			return protocol.ExplainVersion(err, "this gompictl")
		case f.Kind == protocol.KindBye:
			return protocol.ByeError(f.Body)
		case f.ID != t.id:
			return fmt.Errorf("answer %d to request %d", f.ID, t.id)
		case f.Kind == protocol.KindPart:
			if err := part(bytes.Clone(f.Body)); err != nil {
				return err
			}
		case f.Kind == protocol.KindReply:
			var r protocol.Reply
			if err := protocol.Decode(&r, f.Body); err != nil {
				return err
			}
			return r.Err()
		default:
			return f.Kind.Misplaced(protocol.Agent)
		}
	}
}

// Close ends the connection.
func (t *Tool) Close() error {
	t.in.close()
	return t.conn.Close()
}
