// SPDX-License-Identifier: Apache-2.0

package client

import (
	"gompi/internal/control/protocol"
)

// abandoned says what becomes of a request whose context ends before its answer. In each
// case the head is told (Cancel), and answers all the same: a request that waits is
// refused, one that has been done is answered as ever.
type abandoned struct {
	// waits: what was asked for may have happened, so the call waits for that answer, which
	// takes a round trip, and returns it unless it is an error.
	waits bool
	// back, if not nil, gives back what a late answer has given.
	back func(c *Client, asked protocol.Message, answer []byte)
	// same is what a request and a later one have in common that is for the same thing: the
	// later one is sent when the answer to the first has come and was given back, which
	// would else take from the later one. nil: what is given is counted.
	same func(asked protocol.Message) any
}

// requests are all that a process asks. Of those without an entry that says more a context
// just ends the wait: they change nothing.
var requests = map[protocol.Kind]abandoned{
	protocol.KindContact:    {},
	protocol.KindGet:        {},
	protocol.KindAwait:      {},
	protocol.KindDescribe:   {},
	protocol.KindNews:       {},
	protocol.KindSetGet:     {},
	protocol.KindNextEvent:  {}, // who gives up a question ends the interest
	protocol.KindEnd:        {},
	protocol.KindAttachment: {}, // the set was given when the process was attached
	protocol.KindAbort:      {}, // who aborts does not wait for a head that is stuck

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
	protocol.KindSubscribe: {back: (*Client).backFollow, same: sameFollow},
}

// A connection that is lost holds nothing, so that nothing need be given back there.

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

func (c *Client) backFollow(asked protocol.Message, answer []byte) {
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
	if set != 0 { // else In was replaced by another set
		_ = c.tell(&protocol.Set{Kind: protocol.KindUnsubscribe, Number: set})
	}
}

// follows is what a Follow is for.
type follows struct{ set, in uint32 }

func sameFollow(asked protocol.Message) any {
	m := asked.(*protocol.Subscribe)
	return follows{m.Set, m.In}
}
