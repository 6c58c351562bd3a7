// SPDX-License-Identifier: Apache-2.0

package launch

import "time"

// Options are the user's wishes for a job.
type Options struct {
	Apps      []App
	Timeout   time.Duration
	KillGrace time.Duration
	Tag       bool
	OutputDir string
	Stdin     StdinTo
	Bind      string // "core", "numa", "none", "" (by the number of ranks)
	Verbose   bool
	Spare     int // number of processes that wait until a change takes them
	FT        bool
	Settings  map[string]string // settings by environment name
}

// App is one program of the command line.
type App struct {
	NP   int // 0: not given
	Argv []string
	Env  []string // NAME=VALUE, from -x
	Wdir string
}

// StdinTo is the rank that reads standard input, or one of the constants below.
type StdinTo int

// All ranks read it, or none.
const (
	StdinAll  StdinTo = -1
	StdinNone StdinTo = -2
)
