// SPDX-License-Identifier: Apache-2.0

package testlab

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Mark tells the processes of a job from all others: it stands in the environment of
// gompirun, and so of all that it starts.
type Mark string

const markName = "GOMPI_TEST_MARK"

// NewMark makes one that no other job has.
func NewMark() Mark { return Mark(fmt.Sprintf("%x", rand.Uint64())) }

// Env is the mark as NAME=VALUE.
func (m Mark) Env() string { return markName + "=" + string(m) }

// Marked are processes that bear a mark and run.
type Marked struct {
	PIDs      []int
	Addresses []string // of the agents of ranks among them
}

// Find lists the processes of the job that run just now.
func (m Mark) Find() (found Marked) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		env, err := os.ReadFile(f) // that of a zombie is empty
		if err != nil || !bytes.Contains(env, []byte(m.Env())) {
			continue
		}
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		found.PIDs = append(found.PIDs, pid)
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if at, ok := bytes.CutPrefix(v, []byte("GOMPI_CONTROL=")); ok && !slices.Contains(found.Addresses, string(at)) {
				found.Addresses = append(found.Addresses, string(at))
			}
		}
	}
	return found
}

// Gone fails the test unless no process of the job runs within that time, and none of
// its sockets is left, of which these are known. Memory and descriptors of a job are
// its processes'.
func (m Mark) Gone(tb testing.TB, within time.Duration, addresses ...string) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; <-tick.C {
		found := m.Find()
		sockets, _ := os.ReadFile("/proc/net/unix")
		open := slices.ContainsFunc(addresses, func(a string) bool { return strings.Contains(string(sockets), a+"\n") })
		if len(found.PIDs) == 0 && !open {
			return
		}
		if time.Now().After(end) {
			var what []string
			for _, pid := range found.PIDs {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				what = append(what, fmt.Sprintf("%d: %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			}
			tb.Errorf("after %v processes are left: %q; sockets: %v", within, what, open)
			return
		}
	}
}

// seedName sets the seed of a test that is random in each run.
const seedName = "GOMPI_TEST_SEED"

// Seed is that of a test whose runs differ: another one each time, or what
// GOMPI_TEST_SEED says. It is logged.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed, err := strconv.ParseUint(os.Getenv(seedName), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	tb.Logf("seed %d (%s)", seed, seedName)
	return seed
}
