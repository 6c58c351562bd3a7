// SPDX-License-Identifier: Apache-2.0

package inproc_test

import (
	"testing"

	"gompi/internal/base/wire"
	"gompi/transport"
	"gompi/transport/inproc"
	"gompi/transport/transporttest"
)

type fabric struct {
	transporttest.Envs
	hub *inproc.Hub
}

func (f *fabric) Open(t *testing.T, proc wire.ProcID) transport.Transport {
	t.Helper()
	tr, err := f.hub.Open(f.Env(proc))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (f *fabric) Contact(of, _ wire.ProcID) wire.Contact {
	return wire.Contact{Proc: of, Segment: -1, Bell: -1}
}

func (f *fabric) Kill(_ *testing.T, proc wire.ProcID) { f.hub.Kill(proc) }

func newFabric(*testing.T) transporttest.Fabric { return &fabric{hub: inproc.NewHub()} }

func TestConformance(t *testing.T) { transporttest.Run(t, newFabric) }
