// SPDX-License-Identifier: Apache-2.0

package agent

import "gompi/internal/control/protocol"

// handler handles one message of a process that is connected. The message may keep parts of the
// frame's body, which is valid only until the handler returns.
type handler func(a *Agent, s *Proc, f protocol.Frame, m protocol.Message)

// handlers is the handler of each kind that concerns this host alone. The agent passes all other
// kinds on to the head.
var handlers = [256]handler{
	protocol.KindDead:        event((*Agent).acknowledge),
	protocol.KindCommon:      on((*Agent).enterCommon),
	protocol.KindLeaveCommon: event((*Agent).leaveCommon),
	protocol.KindMemory:      on((*Agent).enterMemory),
	protocol.KindLeaveMemory: event((*Agent).leaveMemory),
	protocol.KindStatusWord:  event((*Agent).swapped),
}

// on makes a handler of a method that answers a request.
func on[M protocol.Message](do func(*Agent, *Proc, protocol.Frame, M)) handler {
	return func(a *Agent, s *Proc, f protocol.Frame, m protocol.Message) { do(a, s, f, m.(M)) }
}

// event makes a handler of a method for a message that has no answer.
func event[M protocol.Message](do func(*Agent, *Proc, M)) handler {
	return func(a *Agent, s *Proc, _ protocol.Frame, m protocol.Message) { do(a, s, m.(M)) }
}

// Frame handles one frame of a process that is connected, or passes it on to the head. The body
// must stay valid until the owner has taken the reports of this call (Report). An error means
// that the process broke the protocol.
func (a *Agent) Frame(serial uint32, f protocol.Frame) (passed bool, err error) {
	s := a.procs[serial]
	if err := f.Check(protocol.Process); err != nil {
		return false, err
	}
	do := handlers[f.Kind]
	if do == nil {
		a.report(s, protocol.Report{Kind: protocol.ReportFrame, Frame: f})
		return true, nil
	}
	m, err := f.Message()
	if err != nil {
		return false, err
	}
	do(a, s, f, m)
	return false, nil
}
