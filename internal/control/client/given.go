// SPDX-License-Identifier: Apache-2.0

package client

import (
	"gompi/internal/control"
)

// abandoned says what becomes of a request whose context ends before its answer. In each
// case the head is told (Cancel), and answers all the same: a request that waits is
// refused, one that has been done is answered as ever.
type abandoned struct {
	// waits: what was asked for may have happened, so the call waits for that answer, which
	// takes a round trip, and returns it unless it is an error.
	waits bool
	// back, if not nil, gives back what a late answer has given.
	back func(c *Client, asked control.Message, answer []byte)
	// same is what a request and a later one have in common that is for the same thing: the
	// later one is sent when the answer to the first has come and was given back, which
	// would else take from the later one. nil: what is given is counted.
	same func(asked control.Message) any
}

// requests are all that a process asks. Of those without an entry that says more a context
// just ends the wait: they change nothing.
var requests = map[control.Kind]abandoned{
	control.KindContact:  {},
	control.KindGet:      {},
	control.KindAwait:    {},
	control.KindDescribe: {},
	control.KindNews:     {},
	control.KindSetGet:   {},
	control.KindHappen:   {}, // who gives up a question ends the interest
	control.KindEnd:      {},
	control.KindKin:      {}, // the set was given when the process was attached
	control.KindAbort:    {}, // who aborts does not wait for a head that is stuck

	control.KindPut:      {waits: true},
	control.KindDelete:   {waits: true},
	control.KindFence:    {waits: true},
	control.KindSpawn:    {waits: true},
	control.KindFinalize: {waits: true},
	control.KindSubmit:   {waits: true},
	control.KindWithdraw: {waits: true},
	control.KindUpdate:   {waits: true},
	control.KindHanded:   {waits: true},
	control.KindSetPut:   {waits: true},
	control.KindMain:     {waits: true},
	control.KindProvide:  {waits: true},
	control.KindPort:     {waits: true},
	control.KindMeet:     {waits: true},
	control.KindService:  {waits: true},
	control.KindSignal:   {waits: true},
	control.KindAttach:   {waits: true},
	control.KindAbroad:   {waits: true},

	control.KindLookup:  {back: (*Client).backLookup},
	control.KindDefine:  {back: (*Client).backDefine},
	control.KindAlgebra: {back: (*Client).backAlgebra},
	control.KindCommon:  {back: (*Client).backCommon},
	control.KindMemory:  {back: (*Client).backMemory, same: sameMemory},
	control.KindFollow:  {back: (*Client).backFollow, same: sameFollow},
}

// A connection that is lost holds nothing, so that nothing need be given back there.

func (c *Client) backLookup(_ control.Message, answer []byte) {
	var b control.DescribeBody
	if control.Decode(&b, answer) == nil {
		_ = c.ReleaseSet(b.Set.Number)
	}
}

func (c *Client) backDefine(_ control.Message, answer []byte) {
	var b control.SetBody
	if control.Decode(&b, answer) == nil {
		_ = c.ReleaseSet(b.S.Number)
	}
}

func (c *Client) backAlgebra(_ control.Message, answer []byte) {
	var b control.SetsBody
	if control.Decode(&b, answer) != nil {
		return
	}
	for _, s := range b.Sets {
		if s.Number != 0 { // the head has no record of the empty set
			_ = c.ReleaseSet(s.Number)
		}
	}
}

func (c *Client) backCommon(_ control.Message, answer []byte) {
	var b control.CommonBody
	if control.Decode(&b, answer) == nil {
		_ = c.LeaveCommon(b.X)
	}
}

func (c *Client) backMemory(asked control.Message, _ []byte) {
	_ = c.tell(&control.LeaveMemory{Name: asked.(*control.Memory).Name})
}

func sameMemory(asked control.Message) any { return asked.(*control.Memory).Name }

func (c *Client) backFollow(asked control.Message, answer []byte) {
	m := asked.(*control.Follow)
	var b control.FollowBody
	if control.Decode(&b, answer) != nil {
		return
	}
	set := m.Set
	if m.In != 0 {
		var ask control.AskBody
		if control.Decode(&ask, b.Rest) != nil {
			return
		}
		set = ask.Page
	}
	if b.X.Bytes > 0 {
		_ = c.LeaveCommon(b.X)
	}
	if set != 0 { // else In was replaced by another set
		_ = c.tell(&control.Set{Kind: control.KindUnfollow, Number: set})
	}
}

// follows is what a Follow is for.
type follows struct{ set, in uint32 }

func sameFollow(asked control.Message) any {
	m := asked.(*control.Follow)
	return follows{m.Set, m.In}
}
