// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package agent

import "errors"

func newBell(int) (*Files, error) { return nil, errors.ErrUnsupported }
