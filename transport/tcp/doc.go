// SPDX-License-Identifier: Apache-2.0

// Package tcp is the transport between processes that share no memory. It
// drives raw non-blocking sockets itself: no goroutine, no netpoller, and all
// sockets in one epoll descriptor that the engine watches while it sleeps.
//
// A connection is made when the first message needs it, by either side. It
// begins with a handshake in which both sides prove that they know the job's
// secret (handshake.go); then frames flow (frame.go). What has to happen later
// (a slow connect, a half-written frame, a deadline) is state that Poll moves
// on.
//
// Limits: a lost connection is a lost peer (the sequence numbers and
// acknowledgements that a reconnection needs are sent and checked, but nothing
// is kept for sending it again); one socket per pair; nothing is encrypted.
package tcp
