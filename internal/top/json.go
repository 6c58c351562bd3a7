// SPDX-License-Identifier: Apache-2.0

package top

import (
	"encoding/json"
	"io"
	"time"

	"gompi/internal/control/protocol"
)

// Objects of --json, one a line, of three kinds. Rates are null while they are not known.
// docs/running.md has the contract.

type jsonRates struct {
	CPU           *float64 `json:"cpu"` // processors
	Sent          *float64 `json:"sent_per_sec"`
	SentBytes     *float64 `json:"sent_bytes_per_sec"`
	Received      *float64 `json:"received_per_sec"`
	ReceivedBytes *float64 `json:"received_bytes_per_sec"`
	Collectives   *float64 `json:"collectives_per_sec"`
}

func (r *Row) json() jsonRates {
	if !r.Known || r.Gone {
		return jsonRates{}
	}
	return jsonRates{&r.CPU, &r.Sent, &r.SentBytes, &r.Received, &r.ReceivedBytes, &r.Collectives}
}

type jsonJob struct {
	Top       string `json:"top"` // "job"
	Job       string `json:"job"`
	Time      string `json:"time"`
	Processes int    `json:"processes"`
	Hosts     int    `json:"hosts"`
	Spares    int    `json:"spares"`
	Main      int    `json:"main"` // processes in the main set
	Memory    int64  `json:"memory_bytes"`
	jsonRates
}

type jsonProcess struct {
	Top     string   `json:"top"` // "process"
	Job     string   `json:"job"`
	Time    string   `json:"time"`
	Process uint32   `json:"process"`
	Name    string   `json:"name"`
	Rank    int      `json:"rank"`
	Host    string   `json:"host"`
	PID     int      `json:"pid"`
	State   string   `json:"state"`
	Sets    []string `json:"sets"`
	Memory  int64    `json:"memory_bytes"`
	jsonRates
	CPUTotal      float64  `json:"cpu_sec"`
	Sent          uint64   `json:"sent"`
	SentBytes     uint64   `json:"sent_bytes"`
	Received      uint64   `json:"received"`
	ReceivedBytes uint64   `json:"received_bytes"`
	Collectives   uint64   `json:"collectives"`
	Waits         *string  `json:"waits_in"`
	WaitsFor      *string  `json:"waits_for"`
	Waited        *float64 `json:"waits_sec"`
	At            *string  `json:"waits_at"`
}

type jsonChange struct {
	Top       string   `json:"top"` // "change"
	Job       string   `json:"job"`
	Time      string   `json:"time"`
	Op        uint32   `json:"op"`
	Kind      string   `json:"kind"`
	Sets      []string `json:"sets"`
	State     string   `json:"state"`
	Over      bool     `json:"over"`
	Before    int      `json:"before"`
	After     int      `json:"after"`
	Joins     int      `json:"joins"`
	Leaves    int      `json:"leaves"`
	Asked     string   `json:"asked"`
	Granted   float64  `json:"granted_msec"`
	Ready     float64  `json:"ready_msec"`
	Adopted   float64  `json:"adopted_msec"`
	Decided   float64  `json:"decided_msec"`
	Gone      float64  `json:"gone_msec"`
	WaitsFor  string   `json:"waits_for"`
	WaitedSec float64  `json:"waits_sec"`
	Why       string   `json:"why"`
}

// JSON writes samples as lines of JSON. Each sample lists the changes whose state is new.
type JSON struct {
	Job string
	Out io.Writer

	history History
	told    map[uint32]string // states of changes that were written
}

// Begin takes the first sample, from which rates count.
func (j *JSON) Begin(s *Sample) { j.history.Rows(s) }

// Write writes a sample; samples must be in order of time.
func (j *JSON) Write(s *Sample) error {
	rows := j.history.Rows(s)
	at := s.When.UTC().Format("2006-01-02T15:04:05.000Z")
	out := json.NewEncoder(j.Out)
	t := Total(rows)
	job := jsonJob{Top: "job", Job: j.Job, Time: at, Processes: t.Ranks, Hosts: len(Hosts(rows)), Memory: t.Memory, jsonRates: t.json()}
	for i := range s.Procs {
		if s.Procs[i].State == protocol.Spare {
			job.Spares++
		}
	}
	names := map[uint32]string{}
	for i := range s.Sets {
		names[s.Sets[i].Set.Number] = s.Sets[i].Set.Name
		if s.Sets[i].Main {
			job.Main = s.Sets[i].Living
		}
	}
	if err := out.Encode(&job); err != nil {
		return err
	}
	for i := range rows {
		if err := out.Encode(process(&rows[i], names, j.Job, at)); err != nil {
			return err
		}
	}
	return j.changes(s, at, out)
}

func process(r *Row, names map[uint32]string, job, at string) *jsonProcess {
	p := r.Proc
	o := &jsonProcess{Top: "process", Job: job, Time: at, Process: p.Proc.Serial, Name: r.Name, Rank: p.Rank, Host: p.Host, PID: p.PID, State: p.State.String(),
		Sets: []string{}, Memory: r.Memory, jsonRates: r.json(), CPUTotal: p.Used.CPU.Seconds(),
		Sent: p.Used.Sent, SentBytes: p.Used.SentBytes, Received: p.Used.Received, ReceivedBytes: p.Used.ReceivedBytes, Collectives: p.Used.Collectives}
	for _, n := range p.Sets {
		if name := names[n]; name != "" {
			o.Sets = append(o.Sets, name)
		}
	}
	if p.State == protocol.Joined && len(p.Calls) > 0 {
		c, waited := &p.Calls[0], r.Waited.Seconds()
		o.Waits, o.Waited, o.At = &c.Op, &waited, &c.Caller
		if r.For != "" {
			o.WaitsFor = &r.For
		}
	}
	return o
}

func (j *JSON) changes(s *Sample, at string, out *json.Encoder) error {
	told := map[uint32]string{}
	for i := range s.Ops {
		r := &s.Ops[i]
		o := &r.Op
		state := o.State.String()
		if told[o.Op] = state; j.told[o.Op] == state {
			continue
		}
		c := &jsonChange{Top: "change", Job: j.Job, Time: at, Op: o.Op, Kind: r.Kind.String(), Sets: []string{}, State: state, Over: o.State.Over(),
			Before: r.Before, After: r.After, Joins: r.Joins, Leaves: r.Leaves, Asked: o.Times.Asked.UTC().Format(time.RFC3339Nano),
			Granted: msec(o.Times.Granted), Ready: msec(o.Times.Ready), Adopted: msec(o.Times.Adopted), Decided: msec(o.Times.Decided), Gone: msec(o.Times.Gone),
			WaitsFor: r.Waits, WaitedSec: r.For.Seconds(), Why: o.Text}
		for _, in := range r.Inputs {
			c.Sets = append(c.Sets, in.Name)
		}
		if err := out.Encode(c); err != nil {
			return err
		}
	}
	j.told = told
	return nil
}

func msec(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
