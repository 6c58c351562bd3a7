// SPDX-License-Identifier: Apache-2.0

package control

// addressPrefix: sockets are abstract; "@" stands for the leading zero byte, as everywhere in
// Go.
func addressPrefix() string { return "@gompi-" }
