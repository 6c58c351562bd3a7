// SPDX-License-Identifier: Apache-2.0

// Package transporttest holds every transport to the contract of package
// transport. A transport's own test file gives a Fabric and calls Run:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T) transporttest.Fabric { return newFabric(t) })
//	}
//
// All processes of a test live in the test's own process. Beside what each
// test asks for, every event of every test is checked: EvUp comes first and
// once, nothing follows EvDown, each operation is answered once, payloads and
// headers arrive unchanged and in order. Payloads are overwritten as soon as
// the transport has given them back.
package transporttest

import (
	"testing"
	"time"

	"gompi/internal/base/wire"
	"gompi/transport"
)

// Fabric makes the processes of one test. Its own resources are freed by
// t.Cleanup of the t it was made with; the transports are closed before that.
type Fabric interface {
	// Open starts a process. It is called from the test's goroutine, several
	// times in a test, and fails the test where it cannot. The suite closes
	// the transport.
	Open(t *testing.T, proc wire.ProcID) transport.Transport

	// Contact is what the control plane would give to the process reader for
	// reaching the open process of. Each call gives fresh file descriptors,
	// which the caller owns. Calls do not overlap, but transports are in use
	// in other goroutines meanwhile.
	Contact(of, reader wire.ProcID) wire.Contact

	// Wakes is the channel that the Env.Wake of proc rings, or nil if the
	// transport of proc has a file descriptor and needs none. Envs has it.
	Wakes(proc wire.ProcID) <-chan struct{}
}

// Killer is a Fabric that can end a process as kill -9 would: nothing is
// flushed, no method of its transport is called again, not even Close. What
// it had sent and flushed is still there for the others. The suite calls Fail
// for it on the others afterwards. Without Killer the process just falls
// silent.
//
// Kill is called from any goroutine, when no method of the victim is running.
type Killer interface {
	Kill(t *testing.T, proc wire.ProcID)
}

// Options adapts the suite to a transport. The zero value asks for
// everything.
type Options struct {
	// Skip names tests that the transport cannot pass, each with the reason
	// that is printed.
	Skip map[string]string
	// Deadline is the longest that one wait may take; 0 means 30 s. When it
	// passes, the test fails and prints the state of every process.
	Deadline time.Duration
	// MaxBulkBytes bounds the largest bulk transfer; 0 means 32 MiB.
	MaxBulkBytes int
	// Rounds scales the repetitions: 1,000 wakes, 20,000 messages of the
	// flood, and so on, times Rounds/100. 0 means 100.
	Rounds int
}

// rounds scales n by the options; at least 1.
func (o *Options) rounds(n int) int { return max(1, n*o.Rounds/100) }

// testCase is one named subtest. It gets a world without processes.
type testCase struct {
	name string
	run  func(w *world)
}

// cases is the whole suite, cheapest first.
func cases() []testCase {
	return []testCase{
		{"Caps", testCaps},
		{"InOrderBothWays", testInOrder},
		{"PayloadSizes", testPayloadSizes},
		{"Headers", testHeaders},
		{"Reserve", testReserve},
		{"UpOnceAndFirst", testUp},
		{"ConnectBothSides", testConnectBoth},
		{"ConnectRace", testConnectRace},
		{"FewEvents", testFewEvents},
		{"PayloadHeld", testPayloadHeld},
		{"Flood", testFlood},
		{"FloodDoesNotBlockOthers", testFloodThird},
		{"AllToAll", testAllToAll},
		{"BulkSizes", testBulkSizes},
		{"BulkTruncated", testBulkTruncated},
		{"BulkManyAtOnce", testBulkMany},
		{"BulkWithdraw", testBulkWithdraw},
		{"BulkOutstanding", testBulkOutstanding},
		{"BulkBadDescriptor", testBulkBadDescriptor},
		{"BulkStaleDescriptor", testBulkStale},
		{"WakeMessage", testWakeMessage},
		{"WakeWritable", testWakeWritable},
		{"WakeBulk", testWakeBulk},
		{"ArmIsQuiet", testArmQuiet},
		{"ArmSeesEarlier", testArmSeesEarlier},
		{"FailDelivers", testFailDelivers},
		{"FailAnswersBulk", testFailBulk},
		{"FailWhileSending", testFailWhileSending},
		{"FailBusy", testFailBusy},
		{"Cut", testCut},
		{"CutBeforeConnect", testCutBeforeConnect},
		{"CutAnswersBulk", testCutAnswersBulk},
		{"CutBusy", testCutBusy},
		{"CloseDelivers", testCloseDelivers},
		{"ReleaseAndReconnect", testReconnect},
		{"Churn", testChurn},
		{"SendAfterDown", testSendAfterDown},
		{"Share", testShare},
		{"ShareOutlives", testShareOutlives},
		{"JoinHostile", testJoinHostile},
		{"Memory", testMemory},
		{"MemoryHostile", testMemoryHostile},
		{"ReachHostile", testReachHostile},
		{"NoAllocations", testNoAllocs},
		{"RandomTraffic", testRandom},
	}
}

// Run runs the suite, each test on a fabric of its own.
func Run(t *testing.T, newFabric func(t *testing.T) Fabric) {
	t.Helper()
	RunWith(t, Options{}, newFabric)
}

// RunWith is Run with options. A name in Options.Skip that is no test fails.
func RunWith(t *testing.T, o Options, newFabric func(t *testing.T) Fabric) {
	t.Helper()
	if o.Deadline == 0 {
		o.Deadline = 30 * time.Second
	}
	if o.MaxBulkBytes == 0 {
		o.MaxBulkBytes = 32 << 20
	}
	if o.Rounds == 0 {
		o.Rounds = 100
	}
	if testing.Short() {
		o.Rounds = max(1, o.Rounds/10)
		o.MaxBulkBytes = min(o.MaxBulkBytes, 2<<20)
	}
	all := cases()
	known := make(map[string]bool, len(all))
	for _, c := range all {
		known[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			if why, ok := o.Skip[c.name]; ok {
				t.Skip(why)
			}
			c.run(newWorld(t, o, newFabric(t)))
		})
	}
	for name := range o.Skip {
		if !known[name] {
			t.Errorf("Options.Skip names %q, which is no test of the suite", name)
		}
	}
}
