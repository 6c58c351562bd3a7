// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package agent

import "gompi/internal/control"

func usedBy(int) control.Used { return control.Used{} }
