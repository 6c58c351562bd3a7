// SPDX-License-Identifier: Apache-2.0

package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gompi/mpi"
	"gompi/mpitest"
)

type (
	meters      float64
	intAndFloat struct {
		A int32
		B float64
	}
	floatAndInt struct {
		A float32
		B int64
	}
)

// typesMeet sends ten elements of S and receives them as R, in each way in which
// messages go.
func typesMeet[S, R any](t *mpitest.T, w *mpi.Comm, want string) {
	t.Helper()
	for _, n := range []int{10, 20_000} {
		out, in := make([]S, n), make([]R, 16*n)
		for way := range 4 {
			if w.Rank() == 0 {
				must(t, mpi.Send(w, out, 1, way))
				must(t, mpi.Send(w, out, 1, 9))
				continue
			}
			var err error
			switch way {
			case 0:
				_, err = mpi.Recv(w, in, 0, way)
			case 1:
				_, err = mpi.Irecv(w, in, mpi.AnySource, way).Wait()
			case 2:
				_, err = w.Probe(0, way)
				must(t, err)
				_, err = mpi.Recv(w, in, 0, way)
			case 3:
				_, _, err = mpi.RecvNew[R](w, 0, way)
			}
			if want == "" {
				must(t, err)
			} else if !errors.Is(err, mpi.ErrType) || !strings.Contains(err.Error(), want) {
				t.Errorf("%T into %T, way %d: error %v, want ErrType with %q", out, in, way, err, want)
			}
			// The message is gone, and the next one unharmed.
			_, err = mpi.Recv(w, out, 0, 9)
			must(t, err)
		}
	}
}

// Elements of a message that are of another kind than the receive's are an
// error of the receiver, which names both.
func TestElementsMeet(t *testing.T) {
	for _, check := range []string{"0", "1"} {
		for _, tr := range transports {
			t.Run(fmt.Sprintf("%s-check-%s", tr, check), func(t *testing.T) {
				mpitest.Run(t, 2, func(t *mpitest.T, w *mpi.Comm) {
					typesMeet[float32, float64](t, w, "rank 0 sent float32, rank 1 receives float64")
					typesMeet[int64, float64](t, w, "rank 0 sent int64, rank 1 receives float64")
					typesMeet[int, int64](t, w, "")
					typesMeet[meters, float64](t, w, "")
					typesMeet[float64, byte](t, w, "")
					typesMeet[byte, int16](t, w, "")
					typesMeet[intAndFloat, intAndFloat](t, w, "")
					typesMeet[intAndFloat, byte](t, w, "")
					typesMeet[[2]float64, float64](t, w, "")
					if check == "0" {
						typesMeet[intAndFloat, float64](t, w, "")
					} else {
						typesMeet[intAndFloat, float64](t, w, "rank 0 sent several kinds of elements (a derived type), rank 1 receives float64")
						typesMeet[float64, intAndFloat](t, w, "rank 0 sent float64, rank 1 receives several kinds")
						typesMeet[[2]intAndFloat, intAndFloat](t, w, "")
						typesMeet[intAndFloat, floatAndInt](t, w, "rank 0 sent several kinds of elements (a derived type), rank 1 receives several kinds")
					}
				}, mpitest.Transport(tr), mpitest.Setting("GOMPI_CHECK", check))
			})
		}
	}
}

func TestStatusString(t *testing.T) {
	for want, st := range map[string]mpi.Status{
		"10 elements of 80 bytes from rank 3, tag 5":               {Source: 3, Tag: 5, Count: 10, Bytes: 80},
		"1 element of 8 bytes from rank 0, tag 0":                  {Count: 1, Bytes: 8},
		"7 bytes, no whole number of elements, from rank 0, tag 1": {Tag: 1, Count: mpi.Undefined, Bytes: 7},
		"cancelled":          {Cancelled: true},
		"nothing":            {Source: mpi.AnySource, Tag: mpi.AnyTag},
		"nothing (ProcNull)": {Source: mpi.ProcNull, Tag: mpi.AnyTag},
		"a Go value of 9 bytes from rank 2, tag 4": {Source: 2, Tag: 4, Count: 9, Bytes: 9, Value: true},
	} {
		if got := fmt.Sprint(st); got != want {
			t.Errorf("%#v prints as %q, want %q", st, got, want)
		}
	}
}
