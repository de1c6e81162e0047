package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/machine"
)

// limitSide is what ours is held against.
type limitSide struct {
	crowd.Limit
	pg     *machine.Postgres // nil: SQLite
	offers int
}

func (s limitSide) run(ctx context.Context, dir string, p plan) (run, error) {
	proc, target, err := s.Start(ctx, dir)
	if err != nil {
		return run{}, err
	}
	defer proc.Stop()
	pids := []int{proc.PID()}
	if s.pg != nil {
		pids = append(pids, s.pg.PID())
	}
	reqs := replies(1, s.offers, p.text, target)
	if _, err := load(target, reqs[:p.warm], p.connections, time.Minute); err != nil {
		return run{}, fmt.Errorf("warm-up: %w", err)
	}
	m := machine.NewMeter(pids...)
	samples, err := load(target, reqs[p.warm:], p.connections, p.duration)
	r := run{Peak: proc.Peak()}
	cpu, foreign := m.Read()
	if err != nil {
		r.Failure = err.Error()
	}
	// Its answer comes after the commit of the consume.
	committed := make([]time.Time, len(samples))
	for i, smp := range samples {
		if smp.ok && !smp.unconsumed {
			committed[i] = smp.answered
		}
	}
	r.measure(samples, committed, cpu)
	r.Foreign = foreign
	return r, nil
}
