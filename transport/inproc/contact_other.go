// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package inproc

import "gompi/internal/base/wire"

// dropDescriptors: contacts have none here.
func dropDescriptors(wire.Contact) {}
