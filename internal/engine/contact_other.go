// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

import "gompi/internal/base/wire"

// closeContact does nothing: contacts have no descriptors on this system.
func closeContact(wire.Contact) {}
