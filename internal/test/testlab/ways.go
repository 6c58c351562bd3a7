// SPDX-License-Identifier: Apache-2.0

package testlab

// SendHow is how a message is sent.
type SendHow uint8

// The ways to send.
const (
	Send SendHow = iota
	Isend
	Ssend
	Issend
	Bsend
	SendPersistent
	// SendRetry cancels the send, and repeats it if that succeeded.
	SendRetry
	numSends
)

var sendNames = [...]string{
	Send: "Send", Isend: "Isend", Ssend: "Ssend", Issend: "Issend", Bsend: "Bsend",
	SendPersistent: "SendInit", SendRetry: "Isend+Cancel",
}

// String is the name of the call.
func (h SendHow) String() string { return sendNames[h] }

// RecvHow is how a message is received.
type RecvHow uint8

// The ways to receive.
const (
	Recv RecvHow = iota
	Irecv
	ProbeRecv
	IprobeRecv
	MprobeMrecv
	ImprobeImrecv
	RecvNew
	RecvPersistent
	// RecvRetry cancels the receive, and repeats it if that succeeded.
	RecvRetry
	// RecvGiveUp receives with a context that ends at once, and repeats it
	// without one if nothing was received.
	RecvGiveUp
	numRecvs
)

var recvNames = [...]string{
	Recv: "Recv", Irecv: "Irecv", ProbeRecv: "Probe+Recv", IprobeRecv: "Iprobe+Recv", MprobeMrecv: "Mprobe+Mrecv",
	ImprobeImrecv: "Improbe+Imrecv", RecvNew: "RecvNew", RecvPersistent: "RecvInit", RecvRetry: "Irecv+Cancel", RecvGiveUp: "Recv+ctx",
}

// String is the name of the call.
func (h RecvHow) String() string { return recvNames[h] }
