// SPDX-License-Identifier: Apache-2.0

package redist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gompi/bench/report"
	"gompi/mam"
)

// Job is one start of the laboratory: the methods that are measured between two numbers of
// ranks, together.
type Job struct {
	From, To int
	Methods  []mam.Method
}

// String names the job.
func (j Job) String() string {
	var names []string
	for _, m := range j.Methods {
		names = append(names, m.String())
	}
	return fmt.Sprintf("%d->%d %s", j.From, j.To, strings.Join(names, ","))
}

// Plan is the jobs for all ordered pairs of some numbers of ranks, by methods, but for what
// was measured of the same number of bytes.
func Plan(ranks []int, methods []mam.Method, bytes int64, done []report.Result) []Job {
	type of struct {
		from, to int
		method   string
	}
	have := map[of]bool{}
	for _, r := range done {
		if x := r.Redist; x != nil && r.Bytes == bytes/elemBytes*elemBytes {
			have[of{x.From, x.To, x.Method}] = true
		}
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(ranks)))
	var list []Job
	for _, from := range sorted {
		for _, to := range sorted {
			j := Job{From: from, To: to}
			for _, m := range methods {
				if !have[of{from, to, m.String()}] {
					j.Methods = append(j.Methods, m)
				}
			}
			if from != to && len(j.Methods) > 0 {
				list = append(list, j)
			}
		}
	}
	return list
}

// Runner runs a job: told hears how far it is, between 0 and 1, and what it does.
type Runner func(ctx context.Context, j Job, told func(part float64, what string)) ([]report.Result, error)

// Matrix runs jobs one after the other. keep gets the results of each; its error ends it.
// Of one that fails each method is tried by itself, and those that fail again are left out
// and named in the error. tell hears how far everything is, and how long it will take yet,
// 0 as long as that is not known.
func Matrix(ctx context.Context, jobs []Job, run Runner, keep func([]report.Result) error, tell func(done, left time.Duration, what string)) error {
	whole := 0
	for _, j := range jobs {
		whole += len(j.Methods)
	}
	began := time.Now()
	behind := 0
	var failed []error
	one := func(j Job) error {
		rs, err := run(ctx, j, func(part float64, what string) {
			at := (float64(behind) + part*float64(len(j.Methods))) / float64(max(1, whole))
			done := time.Since(began)
			left := time.Duration(0)
			if at > 0 {
				left = time.Duration(float64(done) * (1 - at) / at)
			}
			tell(done, left, fmt.Sprintf("%d->%d, %s", j.From, j.To, what))
		})
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		return keep(rs)
	}
	for _, j := range jobs {
		err := one(j)
		if err != nil && ctx.Err() == nil && len(j.Methods) > 1 {
			tell(time.Since(began), 0, fmt.Sprintf("%v has failed, its methods are tried one by one: %v", j, err))
			err = nil
			for _, m := range j.Methods {
				alone := Job{j.From, j.To, []mam.Method{m}}
				if e := one(alone); e != nil {
					err = errors.Join(err, fmt.Errorf("%v: %w", alone, e))
				}
			}
		} else if err != nil {
			err = fmt.Errorf("%v: %w", j, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed = append(failed, err)
		}
		behind += len(j.Methods)
	}
	return errors.Join(failed...)
}

// Methods are those of variants, in their order.
func Methods(list []Variant) (methods []mam.Method) {
	for _, v := range list {
		if !slices.Contains(methods, v.Method) {
			methods = append(methods, v.Method)
		}
	}
	return methods
}
