package main

import (
	"context"
	"errors"
	"net/http"
	"os"

	"github.com/countersign/countersign/bench/internal/crowd"
	"github.com/countersign/countersign/bench/internal/machine"
)

// limitPeople have an open offer with each limit.
const limitPeople = 16000

// limit is [crowd.Limit]. It runs no action and has no agent: nothing that waits for an approval can be faster.
type limit struct {
	crowd.Limit
	store  string
	dir    string
	proc   *machine.Process
	url    string
	next   int
	client *http.Client
}

func newLimits(ctx context.Context, dir, folder string, pg *machine.Postgres) ([]*limit, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	program, err := crowd.BuildLimit(ctx, dir, folder)
	if err != nil {
		return nil, err
	}
	var out []*limit
	for _, store := range []string{onPG, onSQLite} {
		if store == onSQLite {
			pg = nil
		}
		l, err := crowd.NewLimit(ctx, program, pg, limitPeople)
		if err != nil {
			return nil, err
		}
		out = append(out, &limit{Limit: l, store: store, dir: dir, client: newClient()})
	}
	return out, nil
}

func limitName(store string) string { return "limit, " + store }

func (l *limit) name() string    { return limitName(l.store) }
func (l *limit) limit() string   { return l.name() }
func (l *limit) version() string { return "" }

func (l *limit) start(ctx context.Context) (err error) {
	l.next = 0
	l.proc, l.url, err = l.Start(ctx, l.dir)
	return err
}

func (l *limit) propose(_ context.Context, n int) ([]approval, error) {
	n = min(n, limitPeople-l.next)
	out := make([]approval, n)
	for i := range out {
		l.next++
		reply := crowd.NewReply(l.next, 0, yes, l.url)
		out[i].decide = func(ctx context.Context) error {
			_, header, err := call(ctx, l.client, http.MethodPost, l.url, reply.Header, reply.Body)
			if err == nil && header.Get("X-Not-Consumed") != "" {
				err = errors.New("nothing was consumed")
			}
			return err
		}
	}
	return out, nil
}

func (l *limit) drain(context.Context) error   { return nil } // it has answered after the commit
func (l *limit) processes() []*machine.Process { return []*machine.Process{l.proc} }
func (l *limit) stop()                         { l.proc.Stop() }
