// SPDX-License-Identifier: Apache-2.0

package wire

// Protocol is the version of everything that processes of different programs share:
// frames of the control plane, segments, registries of blocking calls, change pages,
// message rings, shared-memory collective buffers and message headers. The first change
// of any of them after a release increments it. Programs and gompirun work together if
// their protocol versions are equal, whatever their release versions are.
const Protocol = 9
