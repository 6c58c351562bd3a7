// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"errors"
	"net"
	"os"

	"gompi/internal/control/protocol"
	"gompi/internal/launch"
	"gompi/internal/launch/spawner"
	"gompi/internal/launch/supervisor"
)

// Main runs gompirun and returns its exit status. args is the command line without the
// program's name. Call it once, from main, in a process that does nothing else: it handles
// signals, starts children and needs the standard descriptors. It starts its own program
// again with a special first argument, so a program that is not gompirun must pass that to
// Main too (see IsGuardian).
func Main(args []string) int { return run(args, nil) }

// run is Main with a function that starts agents; nil: the spawner is in this process.
func run(args []string, start starter) int {
	if len(args) == 1 {
		switch args[0] {
		case spawner.GuardianArg:
			return spawner.Guard()
		case agentArg:
			conn, err := net.FileConn(os.Stdin)
			if err != nil {
				launch.Say("%s is for gompirun's own use: %v", agentArg, err)
				return launch.ExitFailure
			}
			os.Stdin.Close()
			return serveAgent(conn)
		}
	}
	o, err := parse(args, os.Getenv)
	if help := errHelp(""); errors.As(err, &help) {
		if launch.WriteAll(1, []byte(help)) != nil {
			return launch.ExitFailure
		}
		return 0
	}
	if err != nil {
		launch.Say("%v", err)
		if isUsage(err) {
			launch.WriteAll(2, []byte("Try gompirun --help.\n"))
			return launch.ExitUsage
		}
		return launch.ExitFailure
	}
	for _, w := range o.warnings {
		launch.Say("%s", w)
	}
	if o.queue != nil {
		return o.queue.run()
	}
	if o.lease != nil {
		if err := o.lease.begin(o); err != nil {
			launch.Say("%v", protocol.Hinted(err))
			return launch.ExitFailure
		}
	}
	sup, d, err := newJob(o, start)
	if err != nil {
		launch.Say("%v", protocol.Hinted(err))
		return launch.ExitFailure
	}
	status := sup.Run()
	d.wait()
	return status
}

// IsGuardian reports whether args ask for a helper process of a gompirun.
func IsGuardian(args []string) bool {
	return len(args) == 1 && (args[0] == spawner.GuardianArg || args[0] == agentArg)
}

// Report writes the state of a job at one moment: the blocking calls of all processes, the
// reason why operations under way wait, unmatched messages, and goroutine dumps. title is
// its first line. gompirun prints it on --timeout and SIGQUIT, gompictl on request.
func Report(title string, procs []protocol.StackReport, ops []protocol.OpReport) string {
	return supervisor.Report(title, procs, ops)
}
