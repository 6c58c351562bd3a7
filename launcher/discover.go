// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"gompi/internal/launch"
)

// How often a list of hosts is looked at, and how long a command may take to print it.
const (
	lookEvery = time.Second
	lookLimit = 30 * time.Second
	mostHosts = 1 << 20 // bytes of a list
)

// discovery is a list of hosts that somebody else keeps.
type discovery struct {
	flag    string
	file    string // "": the command prints it
	command string
	names   []string // of the job's hosts
	every   time.Duration
}

// watch looks at the list again and again, and tells how many slots the job's hosts have
// in it, whenever that changes. A list that cannot be read, or has none of them, changes
// nothing, and is said once.
func (d *discovery) watch(slots func(int), done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-done
		cancel()
	}()
	last, said := 0, ""
	for {
		n, err := d.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			launch.Say("%s: %s", d.flag, said)
		case err == nil && n != last:
			slots(n)
			last, said = n, ""
		}
		select {
		case <-time.After(d.every):
		case <-done:
			return
		}
	}
}

// look is how many slots the job's hosts have now.
func (d *discovery) look(ctx context.Context) (int, error) {
	name, text, err := d.file, []byte(nil), error(nil)
	if d.file != "" {
		text, err = os.ReadFile(d.file)
	} else {
		name = "what it prints"
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		c := exec.CommandContext(ctx, "sh", "-c", d.command)
		c.WaitDelay = time.Second
		text, err = c.Output()
	}
	switch {
	case err != nil:
		return 0, err
	case len(text) > mostHosts:
		return 0, fmt.Errorf("%s has %d bytes, at most %d allowed", name, len(text), mostHosts)
	}
	hs, err := parseHostfile(name, string(bytes.ToValidUTF8(text, nil)))
	if err != nil {
		return 0, err
	}
	n := 0
	for _, h := range hs {
		if d.ours(h.name) {
			n += max(1, h.slots)
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%s has none of the job's hosts: %s", name, strings.Join(d.names, ", "))
	}
	return n, nil
}

// ours reports whether a host takes part in the job.
func (d *discovery) ours(name string) bool {
	for _, own := range d.names {
		if strings.EqualFold(own, name) {
			return true
		}
	}
	return len(d.names) == 1 && isThisHost(name)
}
