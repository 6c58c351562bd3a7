// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

import "gompi/internal/base/wire"

// closeContact: contacts have no descriptors here.
func closeContact(wire.Contact) {}
