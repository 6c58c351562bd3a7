// SPDX-License-Identifier: Apache-2.0

// Package tcp is the transport between processes that share no memory. It uses raw non-blocking
// sockets: no goroutine, no netpoller, and all sockets in one epoll descriptor, which the engine
// watches while it sleeps.
//
// Either side makes a connection when the first message needs it. It begins with a handshake in
// which both sides prove that they know the job's secret (handshake.go). Then it carries frames
// (frame.go). Everything that takes time, such as a slow connect, a half-written frame or a
// deadline, is state that Poll advances.
//
// Limits: a lost connection means a lost peer. (Frames have sequence numbers and acknowledgements
// for a reconnection, and these are checked, but no frame is kept to be sent again.) There is one
// socket per pair of processes. Nothing is encrypted.
package tcp
