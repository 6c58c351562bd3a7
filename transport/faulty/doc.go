// SPDX-License-Identifier: Apache-2.0

// Package faulty wraps a transport and injects faults that the contract allows. New wraps a
// transport by a Plan. Events are held back for some Polls, and so reordered between peers. Send
// answers Full without a reason. A Poll returns few events. Peers die. Shared memory is refused.
// Accesses to the memory of other processes fail half-way. A seed and the calls determine all
// faults, so a failing test can be repeated as far as the transport below repeats itself. Devices
// simulates network adapters for transport.RemoteMemory.
//
// The wrapper has the optional capabilities of the transport below. Its fast boxes hold messages
// back, and Reserve refuses as Send does. Data that processes write into shared memory passes no
// transport, so the wrapper does not change it.
//
// The engine's tests run over the wrapper, and it passes transporttest itself. The order of events
// of one slot is kept. The wrapper deviates from one sentence of the contract: Poll may return less
// than len(ev) although it holds more events. Arm then fails.
package faulty
