// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gompi/mpi"
)

// outcome is the error in what a call returned, that of a request's Wait or a
// persistent operation's Start; nil if it can return none.
func outcome(out []reflect.Value) error {
	for i := len(out) - 1; i >= 0; i-- {
		switch x := out[i].Interface().(type) {
		case mpi.Request:
			_, err := x.Wait()
			return err
		case *mpi.Persistent:
			return x.Start()
		case error:
			return x
		}
	}
	return nil
}

// refuses calls f, which must fail with the class, or panic with our words if
// it has no way to tell.
func refuses(t *testing.T, name string, f func() error, class mpi.Class, why string) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); p != nil {
			if text := fmt.Sprint(p); !strings.HasPrefix(text, "gompi: ") || !strings.Contains(text, why) {
				t.Errorf("%s panics with %v", name, p)
			}
		}
	}()
	if err := f(); !errors.Is(err, class) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v", name, err)
	}
}

// Every method of a nil handle says that it is nil.
func TestNilHandles(t *testing.T) {
	var c *mpi.Comm
	forModule := []string{"Core", "Nodes", "SetNeighbors"} // the last two of this package's tests
	for _, x := range []struct {
		handle any
		class  mpi.Class
		why    string
		except []string
	}{
		{c, mpi.ErrComm, "communicator is nil", append(forModule, "Bufs", "SendBuffer", "CallErrorHandler")},
		{c.Bufs(), mpi.ErrComm, "communicator is nil", nil},
		{c.SendBuffer(), mpi.ErrComm, "communicator is nil", []string{"Attached"}},
		{(*mpi.Persistent)(nil), mpi.ErrRequest, "operation is nil", []string{"Active", "Request", "Kind", "State"}},
		{(*mpi.Message)(nil), mpi.ErrRequest, "message is nil", nil},
	} {
		v := reflect.ValueOf(x.handle)
	methods:
		for i := range v.NumMethod() {
			name := v.Type().Method(i).Name
			for _, e := range x.except {
				if e == name {
					continue methods
				}
			}
			m := v.Method(i)
			var args []reflect.Value
			for k := range m.Type().NumIn() {
				args = append(args, reflect.Zero(m.Type().In(k)))
			}
			refuses(t, v.Type().String()+"."+name, func() error { return outcome(m.Call(args)) }, x.class, x.why)
		}
	}
}

// The functions refuse a nil communicator and message as the methods do.
func TestNilHandlesOfFunctions(t *testing.T) {
	var c *mpi.Comm
	b := []int{1}
	for i, r := range []mpi.Request{mpi.Isend(c, b, 0, 0), mpi.Irecv(c, b, 0, 0), mpi.Ibcast(c, b, 0), mpi.Ibsend(c, b, 0, 0), c.Ibarrier()} {
		for range 2 {
			if done, _, err := r.Test(); !done || !errors.Is(err, mpi.ErrComm) {
				t.Errorf("request %d: %v, %v", i, done, err)
			}
		}
		if err := errors.Join(r.Cancel(), r.Free()); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	second := func(_ any, err error) error { return err }
	for name, f := range map[string]func() error{
		"Send":            func() error { return mpi.Send(c, b, 0, 0) },
		"Send to nobody":  func() error { return mpi.Send(c, b, mpi.ProcNull, 0) },
		"Recv":            func() error { return second(mpi.Recv(c, b, 0, 0)) },
		"Sendrecv":        func() error { return second(mpi.Sendrecv(c, b, 0, 0, make([]int, 1), 0, 0)) },
		"SendrecvReplace": func() error { return second(mpi.SendrecvReplace(c, b, mpi.ProcNull, 0, mpi.ProcNull, 0)) },
		"RecvNew":         func() error { _, _, err := mpi.RecvNew[int](c, 0, 0); return err },
		"Bsend":           func() error { return mpi.Bsend(c, b, 0, 0) },
		"Allreduce":       func() error { return mpi.Allreduce(c, b, make([]int, 1), mpi.Sum) },
		"AllreduceOne":    func() error { return second(mpi.AllreduceOne(c, 1, mpi.Sum)) },
		"BcastOne":        func() error { return second(mpi.BcastOne(c, 1, 0)) },
		"SendOne":         func() error { return mpi.SendOne(c, 1, 0, 0) },
		"RecvOne":         func() error { _, _, err := mpi.RecvOne[int](c, 0, 0); return err },
		"GatherOne":       func() error { return second(mpi.GatherOne(c, 1, 0)) },
		"AllgatherOne":    func() error { return second(mpi.AllgatherOne(c, 1)) },
		"GatherNew":       func() error { return second(mpi.GatherNew(c, b, 0)) },
		"AllgatherNew":    func() error { return second(mpi.AllgatherNew(c, b)) },
		"ScatterNew":      func() error { return second(mpi.ScatterNew(c, [][]int{b}, 0)) },
		"BcastNew":        func() error { return second(mpi.BcastNew(c, b, 0)) },
		"AlltoallNew":     func() error { return second(mpi.AlltoallNew(c, [][]int{b})) },
		"SetAttr":         func() error { return mpi.SetAttr(c, mpi.NewKeyval[int](nil, nil), 1) },
		"GetAttr":         func() error { mpi.GetAttr(c, mpi.NewKeyval[int](nil, nil)); return nil },
		"PsendInit":       func() error { return mpi.PsendInit(c, b, 1, 0, 0).Start() },
		"Waitall":         func() error { return mpi.Waitall([]mpi.Request{{}, c.Ibarrier()}) },
		"Waitany":         func() error { _, _, err := mpi.Waitany([]mpi.Request{{}, c.Ibarrier()}); return err },
		"Waitsome":        func() error { return mpi.Waitsome([]mpi.Request{{}, c.Ibarrier()})[0].Err },
	} {
		refuses(t, name, f, mpi.ErrComm, "communicator is nil")
	}
	refuses(t, "Imrecv", func() error { return second(mpi.Imrecv(nil, b).Wait()) }, mpi.ErrRequest, "message is nil")
	refuses(t, "Startall", func() error { return mpi.Startall([]*mpi.Persistent{nil}) }, mpi.ErrRequest, "operation is nil")
	in, out := []int{1}, []int{2}
	refuses(t, "OpOf(nil)", func() error { return mpi.ReduceLocal(in, out, mpi.OpOf[int](nil)) }, mpi.ErrOp, "function is nil")
	refuses(t, "NewOp(nil)", func() error { return mpi.ReduceLocal(in, out, mpi.NewOp[int](nil)) }, mpi.ErrOp, "function is nil")
}
