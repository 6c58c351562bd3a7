// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package inproc

import "gompi/internal/base/wire"

// dropDescriptors does nothing: contacts have no descriptors here.
func dropDescriptors(wire.Contact) {}
