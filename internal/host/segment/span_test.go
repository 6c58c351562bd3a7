// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"gompi/internal/base/wire"
)

// Under a limit on the size of files a segment has that many bytes of address
// space, and nobody maps what lies behind them.
func TestSpanUnderAFileLimit(t *testing.T) {
	const limit = 100<<20 + 5000
	if os.Getenv("SEGMENT_TEST_CHILD") == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("prlimit", "--fsize=104862600", self, "-test.run=^TestSpanUnderAFileLimit$")
		cmd.Env = append(os.Environ(), "SEGMENT_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
			t.Skip(err)
		} else if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	seg, _ := create(t)
	if err := Check(seg, wire.ProcID{}); err != nil {
		t.Fatal(err)
	}
	span, err := Span(seg)
	if want := int64(limit &^ (os.Getpagesize() - 1)); err != nil || span != want {
		t.Errorf("span %d, %v; want %d", span, err, want)
	}
	if _, err := Map(seg, span-8192, 8192, true); err != nil {
		t.Error(err)
	}
	if m, err := Map(seg, span-4096, 8192, true); err == nil {
		t.Errorf("mapped %d bytes of which half are behind the end", len(m))
	}
	var mem Memory
	defer mem.Close()
	if err := mem.Reserve(seg, span-8192, 8192); err != nil {
		t.Error(err)
	}
	if err := unix.Ftruncate(seg, span-4096); !errors.Is(err, unix.EPERM) {
		t.Errorf("truncate: %v; want EPERM", err)
	}
}
