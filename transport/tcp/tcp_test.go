// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/transporttest"
)

// fabric opens processes that know each other's addresses.
type fabric struct {
	transporttest.Envs
	opt   Options
	addrs map[wire.ProcID][]string
	open  map[wire.ProcID]*Transport
}

func newFabric(opt Options) *fabric {
	return &fabric{opt: opt, addrs: make(map[wire.ProcID][]string), open: make(map[wire.ProcID]*Transport)}
}

func (f *fabric) Open(t *testing.T, proc wire.ProcID) transport.Transport {
	tr, err := Open(f.Env(proc), f.opt)
	if err != nil {
		t.Fatal(err)
	}
	f.addrs[proc], f.open[proc] = tr.Addrs(), tr
	return tr
}

func (f *fabric) Contact(of, _ wire.ProcID) wire.Contact {
	return wire.Contact{Proc: of, Segment: -1, Bell: -1, Addrs: f.addrs[of]}
}

// Kill closes every socket as the kernel does for a killed process: unread
// input resets a connection, the rest ends.
func (f *fabric) Kill(_ *testing.T, proc wire.ProcID) { f.open[proc].closeAll() }

func TestConformance(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Fabric { return newFabric(Options{}) })
}

// TestConformanceSpliced splices all bulk transfers.
func TestConformanceSpliced(t *testing.T) {
	transporttest.RunWith(t, transporttest.Options{Rounds: 50},
		func(t *testing.T) transporttest.Fabric { return newFabric(Options{spliceFrom: probeBytes}) })
}

// TestConformanceSmall makes frames and messages small.
func TestConformanceSmall(t *testing.T) {
	transporttest.RunWith(t, transporttest.Options{Rounds: 50, MaxBulkBytes: 2 << 20},
		func(t *testing.T) transporttest.Fabric {
			return newFabric(Options{EagerMax: 4096, ChunkBytes: minChunk})
		})
}
