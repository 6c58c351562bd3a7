// SPDX-License-Identifier: Apache-2.0

package dyn_test

import (
	"testing"

	"gompi/internal/test/scenes"
)

func TestMain(m *testing.M) { scenes.Main(m, programs) }

func TestScenes(t *testing.T) { scenes.Run(t, programs) }
