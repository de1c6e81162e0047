package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/countersign/countersign/bench/internal/machine"
)

// counting has the server count statements.
const counting = `
shared_preload_libraries='pg_stat_statements'
pg_stat_statements.track=top
`

// counters of work in a database.
type counters struct {
	statements int64 // executed, those of transaction control left out
	writes     int64 // transactions that wrote: reading ones get no id
	trips      int64 // waits for the server
}

func (a counters) minus(b counters) counters {
	return counters{a.statements - b.statements, a.writes - b.writes, a.trips - b.trips}
}

// countersOf reads them, and the trips of the wire.
func countersOf(ctx context.Context, pg *machine.Postgres, database string, w *wire) (counters, error) {
	var n counters
	conn, err := pgx.Connect(ctx, pg.URL(database))
	if err != nil {
		return n, err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was only read
	err = conn.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::bigint, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid AND d.datname = current_database()
		WHERE query !~* '^\s*(begin|commit|rollback)' AND query !~ 'pg_stat_statements'`).Scan(&n.statements, &n.writes)
	n.trips = w.trips.Load()
	return n, err
}

// wire passes connections on to a server and counts round trips: messages after which a client waits for the server.
type wire struct {
	l     net.Listener
	to    string
	trips atomic.Int64
	wg    sync.WaitGroup
}

func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by close
	if err != nil {
		return nil, err
	}
	w := &wire{l: l, to: to}
	w.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.pass(conn) })
		}
	})
	return w, nil
}

func (w *wire) close() { _ = w.l.Close(); w.wg.Wait() }

func (w *wire) pass(client net.Conn) {
	defer client.Close()                 //nolint:errcheck // it is over
	server, err := net.Dial("tcp", w.to) //nolint:noctx // a server of ours
	if err != nil {
		return
	}
	w.wg.Go(func() { _, _ = io.Copy(client, server); _ = client.Close() })
	_ = w.count(server, client)
	_ = server.Close()
}

// count copies a client's messages: a length and a start-up packet, then a type, a length and a body each. A simple
// query (Q) and a sync (S) are what the client waits after.
func (w *wire) count(server io.Writer, client io.Reader) error {
	header := make([]byte, 5)
	head, at := header[:4], 0
	for {
		if _, err := io.ReadFull(client, head); err != nil {
			return err
		}
		if at > 0 && (head[0] == 'Q' || head[0] == 'S') {
			w.trips.Add(1)
		}
		if _, err := server.Write(head); err != nil {
			return err
		}
		n := int64(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
		if _, err := io.CopyN(server, client, n); err != nil {
			return err
		}
		head, at = header, at+1
	}
}
