// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"path"
	"slices"
	"strings"
)

// row says what the non-test files of a package may import of this module.
type row struct {
	pkg string // directory; a last element "*" stands for any one name
	may string // directories of earlier rows, separated by spaces
	// pure: no operating system, no clock and no goroutine's business, only
	// data: none of the packages in impure.
	pure bool
}

// layers is the import table, a statement of policy: lower layers first, and a
// row names only rows above it, so that arrows point down. A new package gets
// a row here, in the same change, with as few names as it can do with.
var layers = []row{
	// Leaves.
	{pkg: "internal/calls", pure: true},
	{pkg: "internal/fault", pure: true},
	{pkg: "internal/wire", pure: true},
	{pkg: "internal/group", may: "internal/wire", pure: true},
	{pkg: "internal/match", may: "internal/wire", pure: true},
	{pkg: "internal/topo", pure: true},
	{pkg: "internal/cost", pure: true},                         // for the module, and for who measures
	{pkg: "internal/layout", may: "internal/topo", pure: true}, // grids are those of topologies
	{pkg: "internal/spawn", pure: true},                        // for requests, which say how, and the head, which does it
	{pkg: "internal/mem", pure: true},
	{pkg: "internal/span", pure: true},
	{pkg: "internal/ring", pure: true},
	{pkg: "internal/bytepool", pure: true},
	{pkg: "internal/credit", pure: true},
	{pkg: "internal/serials", may: "internal/wire", pure: true},
	{pkg: "internal/knob", pure: true},
	{pkg: "internal/ways", pure: true},              // for the transport, and for who measures
	{pkg: "internal/version", may: "internal/wire"}, // of gompi, in a program
	{pkg: "internal/retry"},
	{pkg: "internal/huge"},
	{pkg: "internal/crew"},     // for the module: threads for work that is soon over
	{pkg: "internal/cputime"},  // likewise, and for benchmarks
	{pkg: "internal/distance"}, // of processors: for rings and boards
	{pkg: "internal/dirty"},    // for the module, and for reading memory that is being written
	{pkg: "internal/dtype", may: "internal/mem"},
	{pkg: "internal/buffer", may: "internal/dtype internal/mem"},
	{pkg: "internal/kernel", may: "internal/dtype", pure: true},
	{pkg: "internal/cgroup"},
	{pkg: "internal/wait", may: "internal/cgroup"},
	{pkg: "internal/progress", may: "internal/wait"},
	{pkg: "internal/segment", may: "internal/cgroup internal/huge internal/wire"}, // huge pages of the memory that it fills
	{pkg: "internal/rollcall", may: "internal/wire internal/segment"},
	{pkg: "internal/nodecoll/layout", pure: true},
	// Changes of process sets: neither knows the other.
	{pkg: "internal/change", may: "internal/wire internal/spawn"},
	{pkg: "internal/setpage", pure: true},
	// What a job says of its scaling: read by who decides, written by programs.
	{pkg: "internal/col", pure: true},
	// The control plane: neither head nor agent knows the other, nor the client.
	{pkg: "internal/control", may: "internal/version internal/wire internal/rollcall internal/change internal/spawn"},
	{pkg: "internal/control/client", may: "internal/version internal/control internal/change internal/wire"},
	{pkg: "internal/control/controltest", may: "internal/control internal/change internal/spawn internal/wire internal/rollcall"},
	// Memory of a host that outlives processes: asked of the agent, mapped by who has it.
	{pkg: "internal/hostmem", may: "internal/control internal/segment"},
	{pkg: "internal/head", may: "internal/version internal/change internal/control internal/group internal/serials internal/spawn internal/wire"},
	{pkg: "internal/agent", may: "internal/nodecoll/layout internal/change internal/control internal/setpage internal/wire internal/segment internal/span internal/rollcall"},
	{pkg: "internal/control/link", may: "internal/control"},
	{pkg: "internal/onehost", may: "internal/change internal/head internal/agent internal/control internal/control/link internal/rollcall internal/wire"},
	// What gompictl top shows; only its screen knows terminals.
	{pkg: "internal/top", may: "internal/control internal/rollcall internal/wire"},
	{pkg: "internal/top/screen", may: "internal/top"},
	{pkg: "internal/archtest"},
	{pkg: "internal/testlab"},

	// Algorithms and transports: neither knows the other, nor the engine.
	{pkg: "collectives", may: "internal/wire", pure: true},
	{pkg: "collectives/step", may: "collectives", pure: true},
	{pkg: "collectives/stage", may: "collectives", pure: true},
	{pkg: "collectives/flat", may: "collectives collectives/step", pure: true},
	{pkg: "collectives/inter", may: "collectives collectives/step collectives/stage collectives/flat", pure: true},
	{pkg: "collectives/twolevel", may: "collectives collectives/step collectives/stage collectives/flat", pure: true},
	{pkg: "collectives/verify", may: "collectives collectives/step", pure: true},
	{pkg: "collectives/selection", may: "collectives collectives/flat collectives/inter collectives/twolevel", pure: true},
	{pkg: "collectives/sim", may: "collectives collectives/selection", pure: true},
	{pkg: "transport", may: "internal/wire internal/ways", pure: true},
	{pkg: "transport/transporttest", may: "transport internal/wire"},
	{pkg: "transport/faulty", may: "transport internal/wire"},
	{pkg: "transport/inproc", may: "transport internal/wire internal/mem"},
	{pkg: "transport/shm", may: "transport internal/wire internal/distance internal/mem internal/span internal/segment internal/cgroup internal/huge internal/knob internal/wait internal/ways"},
	{pkg: "transport/tcp", may: "transport internal/knob internal/retry internal/wire internal/distance internal/mem"},

	{pkg: "internal/shmem", may: "transport internal/wire internal/span"},

	// What ranks of a host do in the memory that they share, without waiting.
	{pkg: "internal/nodecoll", may: "internal/nodecoll/layout transport collectives internal/buffer internal/fault internal/wire internal/kernel internal/distance internal/mem internal/wait"},

	// The engine takes transports as values; it imports none of them.
	{pkg: "internal/engine", may: "internal/ways transport collectives collectives/flat internal/buffer internal/calls internal/fault internal/wire internal/group internal/match " +
		"internal/bytepool internal/credit internal/dtype internal/kernel internal/mem internal/nodecoll internal/nodecoll/layout internal/progress internal/retry internal/ring internal/rollcall internal/serials internal/wait"},

	{pkg: "internal/remote", may: "internal/engine internal/shmem transport internal/buffer internal/calls internal/dirty internal/fault internal/wire internal/cgroup internal/segment internal/dtype internal/kernel internal/mem internal/span internal/wait"},

	{pkg: "internal/core", may: "internal/ways internal/engine collectives collectives/selection internal/change transport transport/inproc transport/shm transport/tcp " +
		"internal/buffer internal/calls internal/dtype internal/fault internal/group internal/kernel internal/wire internal/control internal/control/client internal/knob internal/rollcall internal/segment internal/wait"},

	// The public library.
	{pkg: "mpi", may: "internal/core internal/engine collectives collectives/selection " +
		"internal/buffer internal/calls internal/fault internal/wire internal/group internal/dtype internal/kernel internal/mem internal/control " +
		"internal/cgroup internal/topo"},
	{pkg: "mpi/value", may: "mpi"},
	// What it asks the head is its own, and no call of the standard's.
	{pkg: "mpi/proc", may: "mpi internal/core internal/control internal/calls internal/fault internal/wire"},
	{pkg: "sessions", may: "mpi internal/buffer internal/core internal/engine internal/change internal/spawn internal/col internal/setpage internal/control internal/segment internal/calls internal/fault internal/wire internal/group internal/wait"},
	{pkg: "sessions/dyn", may: "mpi sessions internal/calls"},
	{pkg: "sessions/adapt", may: "mpi sessions"},
	{pkg: "rma", may: "mpi internal/remote internal/engine internal/buffer internal/calls internal/fault internal/wire internal/match internal/dtype internal/kernel internal/mem"},

	// The malleability module stands on what programs have, too, and what is pure: who has
	// which elements, and which values settings may have.
	{pkg: "mam", may: "mpi sessions rma internal/cost internal/dirty internal/layout internal/huge internal/crew internal/cputime internal/knob internal/hostmem"},

	// The launcher knows processes and the control plane, never the library.
	{pkg: "internal/launch", may: "internal/control internal/wire"},
	{pkg: "internal/launch/cpus"},
	{pkg: "internal/launch/agent", may: "internal/launch internal/launch/cpus internal/control internal/wire"},
	{pkg: "internal/launch/far", may: "internal/launch internal/launch/agent internal/control internal/control/link internal/wire"},
	{pkg: "internal/launch/head", may: "internal/launch internal/control internal/rollcall internal/wire"},
	// Who decides: without a clock, a socket or a job.
	{pkg: "launcher/rm", may: "internal/col"},
	{pkg: "launcher/rm/sim", may: "launcher/rm internal/col"},
	// Several jobs share slots: lines travel, and nothing of a job.
	{pkg: "launcher/pool", may: "internal/version launcher/rm internal/control"},
	{pkg: "launcher", may: "internal/version collectives/selection internal/ways internal/cost internal/knob internal/wire internal/control internal/control/link internal/head internal/onehost internal/launch internal/launch/cpus internal/launch/agent internal/launch/far internal/launch/head " +
		"internal/change internal/cgroup launcher/rm launcher/pool"},
	{pkg: "internal/testjob", may: "mpi internal/core internal/change internal/segment transport transport/inproc internal/wire " +
		"internal/control internal/control/client internal/control/link internal/onehost internal/rollcall"},
	{pkg: "mpitest", may: "mpi internal/testjob launcher"},
	{pkg: "internal/scenes", may: "mpi mpitest internal/testjob internal/control/controltest"},

	// Applications of both.
	{pkg: "bench/report"},
	{pkg: "bench/plot", may: "bench/report"},
	{pkg: "bench/stages", may: "mpi internal/cputime"}, // what iterations of an application do, for the two laboratories
	{pkg: "bench", may: "internal/ways mpi mpi/value rma sessions collectives collectives/selection collectives/sim internal/cgroup internal/cputime bench/report"},
	// By packages of their own, as they link the module.
	{pkg: "bench/redist", may: "mpi mam internal/cost internal/layout bench bench/report bench/stages"},
	{pkg: "bench/sam", may: "bench bench/report bench/stages mam mpi"},
	{pkg: "bench/peers", may: "bench/report internal/cgroup"},
	{pkg: "bench/peers/empty", may: "mpi"},
	{pkg: "cmd/gompirun", may: "launcher"},
	{pkg: "cmd/gompictl", may: "internal/version launcher launcher/rm launcher/pool internal/wire internal/change internal/control internal/control/client internal/rollcall internal/top internal/top/screen"},
	{pkg: "cmd/gompiplot", may: "internal/version bench/plot bench/report"},
	{pkg: "cmd/gompibench", may: "internal/version bench bench/redist bench/report bench/sam mpi collectives collectives/selection collectives/sim internal/control launcher/rm launcher/rm/sim"},
	{pkg: "examples"}, // holds the tests of all examples
	{pkg: "examples/options", may: "mpi"},
	{pkg: "examples/*", may: "examples/options mpi mpi/value rma sessions sessions/dyn mam"},
}

// testHelpers may be imported by any test that is not below them.
var testHelpers = []string{"internal/testlab", "collectives/selection", "collectives/verify", "transport/transporttest", "transport/faulty", "transport/inproc", "internal/control/client", "internal/control/controltest", "internal/testjob", "internal/scenes", "mpitest"}

// impure is what a pure package must not import, with all below it.
var impure = []string{"os", "net", "syscall", "time", "runtime", "log", "golang.org/x/sys"}

type module struct {
	path string
	may  string // directories as in row; "*" is every package that is not pure
}

// modules says which packages may import another module. Tests may import
// every module of the table.
var modules = []module{
	{"golang.org/x/sys", "*"},
	{"github.com/spf13/pflag", "launcher bench bench/peers cmd/gompirun cmd/gompictl cmd/gompibench cmd/gompiplot examples/*"},
	{"github.com/klauspost/compress", "transport/tcp examples/*"},
	{"gonum.org/v1/plot", "bench/plot"},
	{"github.com/gdamore/tcell/v3", "internal/top/screen"},
	// What the plots and the terminal stand on; nobody here imports it.
	{"github.com/gdamore/encoding", ""},
	{"github.com/lucasb-eyer/go-colorful", ""},
	{"github.com/clipperhouse/displaywidth", ""},
	{"github.com/clipperhouse/uax29/v2", ""},
	{"golang.org/x/term", ""},
	{"codeberg.org/go-fonts/liberation", ""},
	{"codeberg.org/go-latex/latex", ""},
	{"codeberg.org/go-pdf/fpdf", ""},
	{"git.sr.ht/~sbinet/gg", ""},
	{"github.com/ajstarks/svgo", ""},
	{"github.com/golang/freetype", ""},
	{"golang.org/x/image", ""},
	{"golang.org/x/text", ""},
	{"pgregory.net/rapid", ""},
	{"github.com/anishathalye/porcupine", ""},
}

// mpiWithout is what a program must not link because it imports the library:
// each costs start-up time or size that every rank would pay. Package net is there
// by what only it imports, as net/netip is light: with it go build links to the
// system's library.
var mpiWithout = []string{
	"encoding/gob", "crypto", "vendor/golang.org/x/net", "os/user", "net/http", "testing", "github.com/klauspost/compress/zstd", "github.com/spf13/pflag",
}

// rankWithout is what no program of this module links that imports the library: it
// draws, and sets itself up at each start of the program, which is that of each rank.
var rankWithout = []string{"gonum.org/v1/plot", "html/template", "text/template", "image", Module + "/bench/plot",
	"github.com/gdamore/tcell", Module + "/internal/top"}

// rankMay is what one of them links of that all the same: its pictures are the values of
// its cells, and what writes these as PNG sets up nothing but a table or two.
var rankMay = map[string][]string{Module + "/examples/swe": {"image", "image/color", "image/png"}}

// rowOf finds the row of a package directory.
func rowOf(table []row, dir string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return matches(r.pkg, dir) })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// matches reports whether a directory of the table stands for dir.
func matches(pattern, dir string) bool {
	ok, err := path.Match(pattern, dir)
	return ok && err == nil
}

// names reports whether one of the directories in list stands for dir.
func names(list, dir string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(p string) bool { return matches(p, dir) })
}

// reaches reports whether from may import to, directly or not.
func reaches(table []row, from, to string) bool {
	r, ok := rowOf(table, from)
	if !ok {
		return false
	}
	return names(r.may, to) || slices.ContainsFunc(strings.Fields(r.may), func(p string) bool {
		return p != from && reaches(table, p, to)
	})
}

// within reports whether an import path is one of the roots or below one.
func within(roots []string, imp string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return imp == r || strings.HasPrefix(imp, r+"/") })
}
