// SPDX-License-Identifier: Apache-2.0

package launch

import "time"

// Options is what the user wants of a job.
type Options struct {
	Apps      []App
	Timeout   time.Duration
	KillGrace time.Duration
	Tag       bool
	OutputDir string
	Stdin     StdinTo
	Bind      string // "core", "numa", "none", "" (by the number of ranks)
	Verbose   bool
	Spare     int // processes that wait for a change to take them
	FT        bool
	Settings  map[string]string // knobs by environment name
}

// App is one program of the command line.
type App struct {
	NP   int // 0: not given
	Argv []string
	Env  []string // NAME=VALUE, from -x
	Wdir string
}

// StdinTo says who gets standard input: a rank, or one of the two below.
type StdinTo int

// All ranks or none.
const (
	StdinAll  StdinTo = -1
	StdinNone StdinTo = -2
)
