// SPDX-License-Identifier: Apache-2.0

package launcher

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

// watch looks at the list again and again, and tells how many slots each of the job's
// hosts has in it, whenever that changes. A list that cannot be read, or has none of them,
// changes nothing, and is said once.
func (d *discovery) watch(slots func(hosts []int), done <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-done
		cancel()
	}()
	last, said := []int(nil), ""
	for {
		hosts, err := d.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != said:
			said = err.Error()
			launch.Say("%s: %s", d.flag, said)
		case err == nil && !slices.Equal(hosts, last):
			slots(hosts)
			last, said = hosts, ""
		}
		select {
		case <-time.After(d.every):
		case <-done:
			return
		}
	}
}

// look is how many slots each of the job's hosts has now.
func (d *discovery) look(ctx context.Context) ([]int, error) {
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
		return nil, err
	case len(text) > mostHosts:
		return nil, fmt.Errorf("%s has %d bytes, at most %d allowed", name, len(text), mostHosts)
	}
	hs, err := parseHostfile(name, string(bytes.ToValidUTF8(text, nil)))
	if err != nil {
		return nil, err
	}
	hosts := make([]int, len(d.names))
	for _, h := range hs {
		if i := d.ours(h.name); i >= 0 {
			hosts[i] += max(1, h.slots)
		}
	}
	if total(hosts) == 0 {
		return nil, fmt.Errorf("%s has none of the job's hosts: %s", name, strings.Join(d.names, ", "))
	}
	return hosts, nil
}

// total is how many slots hosts have together.
func total(hosts []int) (n int) {
	for _, slots := range hosts {
		n += slots
	}
	return n
}

// ours is the number of a host of the job; -1: it is none.
func (d *discovery) ours(name string) int {
	if i := slices.IndexFunc(d.names, func(own string) bool { return strings.EqualFold(own, name) }); i >= 0 {
		return i
	}
	if len(d.names) == 1 && isThisHost(name) {
		return 0
	}
	return -1
}
