// SPDX-License-Identifier: Apache-2.0

package protocol

// addressPrefix: sockets are abstract; "@" stands for the leading zero byte, as everywhere in
// Go.
func addressPrefix() string { return "@gompi-" }
