// SPDX-License-Identifier: Apache-2.0

package wire

// Protocol is the number of all that processes of different programs share: frames of the
// control plane, the segment, roll call and set pages, rings, boards, message headers. It
// grows by one with the first change of any of them after a release. Programs and gompirun
// work together if they have the same number, whatever their versions are.
const Protocol = 9
