package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/countersign/countersign/people"
)

const (
	// maxIdleDays keeps a duration from running over.
	maxIdleDays = 36500
	// idleEvery is how often addresses are looked through for idle ones: their age counts in days.
	idleEvery = time.Minute
)

// sweeps are the clock's steps about addresses and strangers.
func sweeps(s people.PairingStore, idleDays int, now func() time.Time, log *slog.Logger) []func(context.Context) (int, error) {
	steps := []func(context.Context) (int, error){every(idleEvery, now, s.ForgetPending)}
	if idleDays > 0 {
		steps = append(steps, every(idleEvery, now, func(ctx context.Context) (int, error) {
			n, err := s.UnbindIdle(ctx, time.Duration(idleDays)*24*time.Hour)
			if n > 0 {
				log.WarnContext(ctx, "addresses without a text for long were unbound; bot people list names them", "addresses", n, "idle_days", idleDays)
			}
			return n, err
		}))
	}
	return steps
}

// every runs a step at most once within that time.
func every(apart time.Duration, now func() time.Time, step func(context.Context) (int, error)) func(context.Context) (int, error) {
	var last time.Time // the clock takes its steps one after another
	return func(ctx context.Context) (int, error) {
		if at := now(); last.IsZero() || at.Sub(last) >= apart {
			last = at
			return step(ctx)
		}
		return 0, nil
	}
}
