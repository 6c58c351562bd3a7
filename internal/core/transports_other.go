// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package core

// openers are the transports between processes, which need Linux.
var openers map[string]opener

const known = " on this system; there is inproc, for goroutines"
