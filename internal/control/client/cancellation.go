// SPDX-License-Identifier: Apache-2.0

package client

import (
	"gompi/internal/control/protocol"
)

// cancellation says what becomes of a request whose context ends before its answer. The client always
// sends a Cancel, and the head always answers: it refuses a request that waits, and answers one that
// is done as if there were no Cancel.
type cancellation struct {
	// waits: the request may have had its effect. The call waits for that answer, which takes a round
	// trip, and returns it unless it is an error.
	waits bool
	// back, if it is not nil, gives back what a late answer gave.
	back func(c *Client, asked protocol.Message, answer []byte)
	// same returns what two requests for the same thing have in common. The client sends the second
	// one only after the late answer to the first one was given back, since that would take the thing
	// from the second one, too. nil: the head counts how often it gives the thing.
	same func(asked protocol.Message) any
}

// requests has all requests of a process. A request with an empty row changes nothing, so that a
// context just ends the wait.
var requests = map[protocol.Kind]cancellation{
	protocol.KindContact:    {},
	protocol.KindGet:        {},
	protocol.KindAwait:      {},
	protocol.KindDescribe:   {},
	protocol.KindNews:       {},
	protocol.KindSetGet:     {},
	protocol.KindNextEvent:  {}, // an abandoned one ends the subscription
	protocol.KindEnd:        {},
	protocol.KindAttachment: {}, // the process got the set when it was attached
	protocol.KindAbort:      {}, // a process that aborts does not wait for a stuck head

	protocol.KindPut:        {waits: true},
	protocol.KindDelete:     {waits: true},
	protocol.KindFence:      {waits: true},
	protocol.KindSpawn:      {waits: true},
	protocol.KindFinalize:   {waits: true},
	protocol.KindSubmit:     {waits: true},
	protocol.KindWithdraw:   {waits: true},
	protocol.KindUpdate:     {waits: true},
	protocol.KindGetChange:  {waits: true},
	protocol.KindSetPut:     {waits: true},
	protocol.KindMain:       {waits: true},
	protocol.KindProvide:    {waits: true},
	protocol.KindPort:       {waits: true},
	protocol.KindConnect:    {waits: true},
	protocol.KindService:    {waits: true},
	protocol.KindSignal:     {waits: true},
	protocol.KindAttach:     {waits: true},
	protocol.KindForeignJob: {waits: true},

	protocol.KindLookup:    {back: (*Client).backLookup},
	protocol.KindDefine:    {back: (*Client).backDefine},
	protocol.KindAlgebra:   {back: (*Client).backAlgebra},
	protocol.KindCommon:    {back: (*Client).backCommon},
	protocol.KindMemory:    {back: (*Client).backMemory, same: sameMemory},
	protocol.KindSubscribe: {back: (*Client).backSubscribe, same: sameSubscribe},
}

// These ignore errors: a lost connection holds nothing that could be given back.

func (c *Client) backLookup(_ protocol.Message, answer []byte) {
	var b protocol.DescribeBody
	if protocol.Decode(&b, answer) == nil {
		_ = c.ReleaseSet(b.Set.Number)
	}
}

func (c *Client) backDefine(_ protocol.Message, answer []byte) {
	var b protocol.SetBody
	if protocol.Decode(&b, answer) == nil {
		_ = c.ReleaseSet(b.S.Number)
	}
}

func (c *Client) backAlgebra(_ protocol.Message, answer []byte) {
	var b protocol.SetsBody
	if protocol.Decode(&b, answer) != nil {
		return
	}
	for _, s := range b.Sets {
		if s.Number != 0 { // the head has no record of the empty set
			_ = c.ReleaseSet(s.Number)
		}
	}
}

func (c *Client) backCommon(_ protocol.Message, answer []byte) {
	var b protocol.CommonBody
	if protocol.Decode(&b, answer) == nil {
		_ = c.LeaveCommon(b.X)
	}
}

func (c *Client) backMemory(asked protocol.Message, _ []byte) {
	_ = c.tell(&protocol.LeaveMemory{Name: asked.(*protocol.Memory).Name})
}

func sameMemory(asked protocol.Message) any { return asked.(*protocol.Memory).Name }

func (c *Client) backSubscribe(asked protocol.Message, answer []byte) {
	m := asked.(*protocol.Subscribe)
	var b protocol.PageBody
	if protocol.Decode(&b, answer) != nil {
		return
	}
	set := m.Set
	if m.In != 0 {
		var ask protocol.QueryBody
		if protocol.Decode(&ask, b.Rest) != nil {
			return
		}
		set = ask.Page
	}
	if b.X.Bytes > 0 {
		_ = c.LeaveCommon(b.X)
	}
	if set != 0 { // it is 0 if another set has replaced In
		_ = c.tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: set})
	}
}

// subscription is what a Subscribe is for.
type subscription struct{ set, in uint32 }

func sameSubscribe(asked protocol.Message) any {
	m := asked.(*protocol.Subscribe)
	return subscription{m.Set, m.In}
}
