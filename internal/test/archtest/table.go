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
	// Folders of internal/: their doc.go alone.
	{pkg: "internal/base", pure: true},
	{pkg: "internal/host", pure: true},
	{pkg: "internal/data", pure: true},
	{pkg: "internal/resize", pure: true},
	{pkg: "internal/control", pure: true},
	{pkg: "internal/test", pure: true},
	// Leaves.
	{pkg: "internal/base/fault", pure: true},
	{pkg: "internal/base/wire", pure: true},
	{pkg: "internal/base/group", may: "internal/base/wire", pure: true},
	{pkg: "internal/engine/match", may: "internal/base/wire", pure: true},
	{pkg: "internal/base/topo", pure: true},
	{pkg: "internal/resize/cost", pure: true},                              // for mam, and for benchmarks
	{pkg: "internal/resize/layout", may: "internal/base/topo", pure: true}, // grids are those of topologies
	{pkg: "internal/control/spawn", pure: true},                            // requests name the way, the head takes it
	{pkg: "internal/host/mem", pure: true},
	{pkg: "internal/base/freelist", pure: true},
	{pkg: "internal/base/list", pure: true},
	{pkg: "internal/base/bytepool", pure: true},
	{pkg: "internal/base/credit", pure: true},
	{pkg: "internal/base/idset", may: "internal/base/wire", pure: true},
	{pkg: "internal/base/settings", pure: true},
	{pkg: "transport/tuning", pure: true},                     // for the transport, and for benchmarks
	{pkg: "internal/base/version", may: "internal/base/wire"}, // the version of gompi in a program
	{pkg: "internal/base/retry"},
	{pkg: "internal/host/huge"},
	{pkg: "internal/host/parallel"},  // for mam: threads for short work
	{pkg: "internal/host/cputime"},   // likewise, and for benchmarks
	{pkg: "internal/host/cachedist"}, // between processors: for rings and shared-memory collectives
	{pkg: "internal/host/dirty"},     // for mam: memory that is read while it is written
	{pkg: "internal/data/dtype", may: "internal/host/mem"},
	{pkg: "internal/data/buffer", may: "internal/data/dtype internal/host/mem"},
	{pkg: "internal/data/kernel", may: "internal/data/dtype", pure: true},
	{pkg: "internal/host/cgroup"},
	{pkg: "internal/host/wait", may: "internal/host/cgroup"},
	{pkg: "internal/engine/progress", may: "internal/host/wait"},
	{pkg: "internal/host/segment", may: "internal/host/cgroup internal/host/huge internal/base/wire"}, // huge pages of the memory that it fills
	{pkg: "internal/control/callreg", may: "internal/base/wire internal/host/segment"},
	{pkg: "internal/control/collmem", pure: true},
	// Changes of process sets: neither knows the other.
	{pkg: "internal/control/change", may: "internal/base/wire internal/control/spawn"},
	{pkg: "internal/control/changepage", pure: true},
	// What a job says of its scaling: programs write it, resource managers read it.
	{pkg: "internal/resize/col", pure: true},
	// The control plane: neither head nor agent knows the other, nor the client.
	{pkg: "internal/control/protocol", may: "internal/base/version internal/base/wire internal/control/callreg internal/control/change internal/control/spawn"},
	{pkg: "internal/control/client", may: "internal/base/version internal/control/protocol internal/control/change internal/base/wire"},
	{pkg: "internal/control/controltest", may: "internal/control/protocol internal/control/change internal/control/spawn internal/base/wire internal/control/callreg"},
	// Memory of a host that outlives processes: the agent makes it, processes map it.
	{pkg: "internal/control/hostmem", may: "internal/control/protocol internal/host/segment"},
	{pkg: "internal/control/head", may: "internal/base/version internal/control/change internal/control/protocol internal/base/group internal/base/idset internal/control/spawn internal/base/wire"},
	{pkg: "internal/control/agent", may: "internal/control/collmem internal/control/change internal/control/protocol internal/control/changepage internal/base/wire internal/host/segment internal/base/freelist internal/control/callreg"},
	{pkg: "internal/control/link", may: "internal/control/protocol"},
	{pkg: "internal/control/server", may: "internal/control/change internal/control/head internal/control/agent internal/control/protocol internal/control/link internal/control/callreg internal/base/wire"},
	// What gompictl top shows; only its screen knows terminals.
	{pkg: "internal/top", may: "internal/control/protocol internal/control/callreg internal/base/wire"},
	{pkg: "internal/top/screen", may: "internal/top"},
	{pkg: "internal/test/archtest"},
	{pkg: "internal/test/house"},
	{pkg: "internal/test/testlab"},

	// Algorithms and transports: neither knows the other, nor the engine.
	{pkg: "collectives", may: "internal/base/wire", pure: true},
	{pkg: "collectives/step", may: "collectives", pure: true},
	{pkg: "collectives/stage", may: "collectives", pure: true},
	{pkg: "collectives/flat", may: "collectives collectives/step", pure: true},
	{pkg: "collectives/inter", may: "collectives collectives/step collectives/stage collectives/flat", pure: true},
	{pkg: "collectives/twolevel", may: "collectives collectives/step collectives/stage collectives/flat", pure: true},
	{pkg: "collectives/verify", may: "collectives collectives/step", pure: true},
	{pkg: "collectives/selection", may: "collectives collectives/flat collectives/inter collectives/twolevel", pure: true},
	{pkg: "collectives/sim", may: "collectives collectives/selection", pure: true},
	{pkg: "transport", may: "internal/base/wire transport/tuning", pure: true},
	{pkg: "transport/transporttest", may: "transport internal/base/wire"},
	{pkg: "transport/faulty", may: "transport internal/base/wire"},
	{pkg: "transport/inproc", may: "transport internal/base/wire internal/host/mem"},
	{pkg: "transport/shm", may: "transport internal/base/wire internal/host/cachedist internal/host/mem internal/base/freelist internal/host/segment internal/host/cgroup internal/host/huge internal/base/settings internal/host/wait transport/tuning"},
	{pkg: "transport/tcp", may: "transport internal/base/settings internal/base/retry internal/base/wire internal/host/cachedist internal/host/mem"},

	{pkg: "internal/engine/shmem", may: "transport internal/base/wire internal/base/freelist"},

	// What ranks of a host do in the memory that they share, without waiting.
	{pkg: "internal/engine/shmcoll", may: "internal/control/collmem transport collectives internal/data/buffer internal/base/fault internal/base/wire internal/data/kernel internal/host/cachedist internal/host/mem internal/host/wait"},

	// The engine takes transports as values; it imports none of them.
	{pkg: "internal/engine", may: "transport/tuning transport collectives collectives/flat internal/data/buffer internal/base/fault internal/base/wire internal/base/group internal/engine/match " +
		"internal/base/bytepool internal/base/credit internal/data/dtype internal/data/kernel internal/host/mem internal/engine/shmcoll internal/control/collmem internal/engine/progress internal/base/retry internal/base/list internal/control/callreg internal/base/idset internal/host/wait"},

	{pkg: "internal/engine/remote", may: "internal/engine internal/engine/shmem transport internal/data/buffer internal/base/fault internal/host/dirty internal/base/wire internal/host/cgroup internal/host/segment internal/data/dtype internal/data/kernel internal/host/mem internal/base/freelist internal/host/wait"},

	{pkg: "internal/core", may: "transport/tuning internal/engine collectives collectives/selection internal/control/change transport transport/inproc transport/shm transport/tcp " +
		"internal/data/buffer internal/base/fault internal/data/dtype internal/base/fault internal/base/group internal/data/kernel internal/base/wire internal/control/protocol internal/control/client internal/base/settings internal/control/callreg internal/host/segment internal/host/wait"},

	// The public library.
	{pkg: "mpi", may: "internal/core internal/engine collectives collectives/selection " +
		"internal/data/buffer internal/base/fault internal/base/wire internal/base/group internal/data/dtype internal/data/kernel internal/host/mem internal/control/protocol " +
		"internal/host/cgroup internal/base/topo"},
	{pkg: "mpi/value", may: "mpi"},
	// What it asks the head is its own, and no call of the standard's.
	{pkg: "mpi/proc", may: "mpi internal/core internal/control/protocol internal/base/fault internal/base/wire"},
	{pkg: "sessions", may: "mpi internal/data/buffer internal/core internal/engine internal/control/change internal/control/spawn internal/resize/col internal/control/changepage internal/control/protocol internal/host/segment internal/base/fault internal/base/wire internal/base/group internal/host/wait"},
	{pkg: "sessions/dyn", may: "mpi sessions internal/base/fault"},
	{pkg: "sessions/adapt", may: "mpi sessions"},
	{pkg: "rma", may: "mpi internal/engine/remote internal/engine internal/data/buffer internal/base/fault internal/base/wire internal/engine/match internal/data/dtype internal/data/kernel internal/host/mem"},

	// The malleability module stands on what programs have, too, and what is pure: who has
	// which elements, and which values settings may have.
	{pkg: "mam", may: "mpi sessions rma internal/resize/cost internal/host/dirty internal/resize/layout internal/host/huge internal/host/parallel internal/host/cputime internal/base/settings internal/control/hostmem"},

	// The launcher knows processes and the control plane, never the library.
	{pkg: "internal/launch", may: "internal/control/protocol internal/base/wire"},
	{pkg: "internal/host/cpus"},
	{pkg: "internal/launch/spawner", may: "internal/launch internal/host/cpus internal/control/protocol internal/base/wire"},
	{pkg: "internal/launch/far", may: "internal/launch internal/launch/spawner internal/control/protocol internal/control/link internal/base/wire"},
	{pkg: "internal/launch/supervisor", may: "internal/launch internal/control/protocol internal/control/callreg internal/base/wire"},
	// Resource managers decide without a clock, a socket or a job.
	{pkg: "launcher/rm", may: "internal/resize/col"},
	{pkg: "launcher/rm/sim", may: "launcher/rm internal/resize/col"},
	// Several jobs share slots: lines travel, and nothing of a job.
	{pkg: "launcher/pool", may: "internal/base/version launcher/rm internal/control/protocol"},
	{pkg: "launcher", may: "internal/base/version collectives/selection transport/tuning internal/resize/cost internal/base/settings internal/base/wire internal/control/protocol internal/control/link internal/control/head internal/control/server internal/launch internal/host/cpus internal/launch/spawner internal/launch/far internal/launch/supervisor " +
		"internal/control/change internal/host/cgroup launcher/rm launcher/pool"},
	{pkg: "internal/test/testjob", may: "mpi internal/core internal/control/change internal/host/segment transport transport/inproc internal/base/wire " +
		"internal/control/protocol internal/control/client internal/control/link internal/control/server internal/control/callreg"},
	{pkg: "mpitest", may: "mpi internal/test/testjob launcher"},
	{pkg: "internal/test/scenes", may: "mpi mpitest internal/test/testjob internal/test/testlab internal/control/controltest"},

	// Applications of both.
	{pkg: "bench/report"},
	{pkg: "bench/plot", may: "bench/report"},
	{pkg: "bench/stages", may: "mpi internal/host/cputime"}, // what iterations of an application do, for the two laboratories
	{pkg: "bench", may: "transport/tuning mpi mpi/value rma sessions collectives collectives/selection collectives/sim internal/host/cgroup internal/host/cputime bench/report"},
	// By packages of their own, as they link the module.
	{pkg: "bench/redist", may: "mpi mam internal/resize/cost internal/resize/layout bench bench/report bench/stages"},
	{pkg: "bench/sam", may: "bench bench/report bench/stages mam mpi"},
	{pkg: "bench/peers", may: "bench/report internal/host/cgroup"},
	{pkg: "bench/peers/empty", may: "mpi"},
	{pkg: "cmd/gompirun", may: "launcher"},
	{pkg: "cmd/gompictl", may: "internal/base/version launcher launcher/rm launcher/pool internal/base/wire internal/control/change internal/control/protocol internal/control/client internal/control/callreg internal/top internal/top/screen"},
	{pkg: "cmd/gompiplot", may: "internal/base/version bench/plot bench/report"},
	{pkg: "cmd/gompibench", may: "internal/base/version bench bench/redist bench/report bench/sam mpi collectives collectives/selection collectives/sim internal/control/protocol launcher/rm launcher/rm/sim"},
	{pkg: "examples"}, // holds the tests of all examples
	{pkg: "examples/options", may: "mpi"},
	{pkg: "examples/*", may: "examples/options mpi mpi/value rma sessions sessions/dyn mam"},
}

// testHelpers may be imported by any test that is not below them.
var testHelpers = []string{"internal/test/testlab", "collectives/selection", "collectives/verify", "transport/transporttest", "transport/faulty", "transport/inproc", "internal/control/client", "internal/control/controltest", "internal/test/testjob", "internal/test/scenes", "mpitest"}

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
