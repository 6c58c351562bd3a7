// SPDX-License-Identifier: Apache-2.0

package protocol

// addressPrefix begins the addresses of all agents. The sockets are abstract: in Go "@" stands for
// the leading zero byte.
func addressPrefix() string { return "@gompi-" }
