package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"modernc.org/libc"
	codes "modernc.org/sqlite/lib"
)

// DSN is how the writing connection opens the file.
func (s *Store) DSN() string { return s.dsn }

// OnFullDisk buffers a page for a WAL that takes nothing, does something to it, and returns the answer. What the file
// below does otherwise succeeds.
func OnFullDisk(did string) int32 {
	tls := libc.NewTLS()
	defer tls.Close()
	place := func(size uintptr) uintptr { return libc.Xcalloc(tls, 1, codes.Tsize_t(size)) }
	file, ours, db, base := place(unsafe.Sizeof(codes.Tsqlite3_file{})), place(unsafe.Sizeof(shimFile{})), place(unsafe.Sizeof(shimFile{})), place(unsafe.Sizeof(codes.Tsqlite3_io_methods{}))
	dbFile := place(unsafe.Sizeof(codes.Tsqlite3_file{}))
	for _, p := range []uintptr{file, ours, db, base, dbFile} {
		defer libc.Xfree(tls, p)
	}
	*memory[codes.Tsqlite3_io_methods](base) = codes.Tsqlite3_io_methods{
		FxWrite:    address[writeFunc](func(*libc.TLS, uintptr, uintptr, int32, int64) int32 { return codes.SQLITE_FULL }),
		FxSync:     address[syncFunc](func(*libc.TLS, uintptr, int32) int32 { return codes.SQLITE_OK }),
		FxRead:     address[readFunc](func(*libc.TLS, uintptr, uintptr, int32, int64) int32 { return codes.SQLITE_OK }),
		FxTruncate: address[truncateFunc](func(*libc.TLS, uintptr, int64) int32 { return codes.SQLITE_OK }),
		FxFileSize: address[sizeFunc](func(*libc.TLS, uintptr, uintptr) int32 { return codes.SQLITE_OK }),
		FxClose:    address[closeFunc](func(*libc.TLS, uintptr) int32 { return codes.SQLITE_OK }),
	}
	memory[codes.Tsqlite3_file](file).FpMethods, memory[codes.Tsqlite3_file](dbFile).FpMethods = ours, db
	f := memory[shimFile](ours)
	f.base, f.peer = memory[codes.Tsqlite3_io_methods](base), dbFile
	page := place(4096)
	defer libc.Xfree(tls, page)
	if rc := writeWAL(tls, file, page, 4096, 32); rc != codes.SQLITE_OK {
		return rc
	}
	if did != "close" {
		defer closeWAL(tls, file)
	}
	switch did {
	case "sync":
		return syncWAL(tls, file, 0)
	case "read":
		return readWAL(tls, file, page, 4096, 32)
	case "cut":
		return truncateWAL(tls, file, 0)
	case "size":
		return sizeOfWAL(tls, file, page)
	case "close":
		return closeWAL(tls, file)
	}
	return writeWAL(tls, file, page, 4096, 32) // not where the buffer ends: it is flushed first
}

// Raw is a connection of SQLite's own to a file whose log is written by this package.
type Raw struct {
	tls *libc.TLS
	db  uintptr
}

// OpenRaw opens a file, or makes it.
func OpenRaw(path string) (*Raw, error) {
	if err := registerWALVFS(); err != nil {
		return nil, err
	}
	r := &Raw{tls: libc.NewTLS()}
	return r, r.with(func(p uintptr) int32 {
		name, err := libc.CString(path)
		if err != nil {
			return codes.SQLITE_NOMEM
		}
		defer libc.Xfree(r.tls, name)
		vfs, err := libc.CString(walVFS)
		if err != nil {
			return codes.SQLITE_NOMEM
		}
		defer libc.Xfree(r.tls, vfs)
		rc := codes.Xsqlite3_open_v2(r.tls, name, p, codes.SQLITE_OPEN_READWRITE|codes.SQLITE_OPEN_CREATE, vfs)
		r.db = *memory[uintptr](p)
		return rc
	})
}

// with calls fn with a place for an address.
func (r *Raw) with(fn func(p uintptr) int32) error {
	p := libc.Xcalloc(r.tls, 1, 8)
	defer libc.Xfree(r.tls, p)
	if rc := fn(p); rc != codes.SQLITE_OK {
		return RawError(rc)
	}
	return nil
}

// RawError is a result code of SQLite.
type RawError int32

func (e RawError) Error() string { return "result " + strconv.Itoa(int(e)) }

// Exec runs statements.
func (r *Raw) Exec(query string) error {
	q, err := libc.CString(query)
	if err != nil {
		return err
	}
	defer libc.Xfree(r.tls, q)
	if rc := codes.Xsqlite3_exec(r.tls, r.db, q, 0, 0, 0); rc != codes.SQLITE_OK {
		return RawError(rc)
	}
	return nil
}

// FillDisk makes what is below the log, or below the database, take nothing until free is called.
func (r *Raw) FillDisk(log bool) (free func(), err error) {
	which := int32(codes.SQLITE_FCNTL_FILE_POINTER)
	if log {
		which = codes.SQLITE_FCNTL_JOURNAL_POINTER
	}
	err = r.with(func(p uintptr) int32 {
		if rc := codes.Xsqlite3_file_control(r.tls, r.db, 0, which, p); rc != codes.SQLITE_OK {
			return rc
		}
		f := shimOf(*memory[uintptr](p))
		base, methods, place := f.base, f.methods, libc.Xcalloc(r.tls, 1, codes.Tsize_t(unsafe.Sizeof(*f.base)))
		full := memory[codes.Tsqlite3_io_methods](place)
		*full = *base
		full.FxWrite = address[writeFunc](func(*libc.TLS, uintptr, uintptr, int32, int64) int32 { return codes.SQLITE_FULL })
		if f.base = full; methods.FxWrite == base.FxWrite {
			f.methods.FxWrite = full.FxWrite
		}
		free = func() {
			f.base, f.methods = base, methods
			libc.Xfree(r.tls, place)
		}
		return codes.SQLITE_OK
	})
	return free, err
}

// Close closes the connection.
func (r *Raw) Close() error {
	defer r.tls.Close()
	if rc := codes.Xsqlite3_close(r.tls, r.db); rc != codes.SQLITE_OK {
		return RawError(rc)
	}
	return nil
}

// GroupSize is how many writers share one commit at most.
const GroupSize = groupSize

// Assign gives a value of the driver to what dest points to.
func Assign(dest, value any) error { return assign(dest, value) }

// WithBusyWait shortens one wait of SQLite for another process; how long the lock is waited for stays as it is.
func WithBusyWait(d time.Duration) Option { return func(s *Store) { s.busy = d } }

// Write runs fn as the store's own writes are run.
func (s *Store) Write(ctx context.Context, fn func(exec func(query string, args ...any) error, count func(query string, args ...any) (int, error)) error) error {
	return s.write(ctx, func(q session, _ time.Time) error {
		return fn(func(query string, args ...any) error {
			_, err := q.exec(query, args...)
			return err
		}, func(query string, args ...any) (n int, err error) {
			err = q.one(query, args, &n)
			return n, err
		})
	})
}

// InLine says how many writers wait.
func (s *Store) InLine() int {
	return s.waiting.Len()
}

// Plans are the plans of all statements that the store has prepared, by their text.
func (s *Store) Plans(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for _, by := range []*statements{s.reader, s.writer} {
		by.mu.Lock()
		queries := slices.Collect(maps.Keys(by.by))
		by.mu.Unlock()
		for _, query := range queries {
			var args []any // one for each number
			for i := 1; strings.Contains(query, "?"+strconv.Itoa(i)); i++ {
				args = append(args, nil)
			}
			lines, err := all(s.read(ctx), func(r row) (line string, err error) {
				var id, parent, unused int
				err = r.Scan(&id, &parent, &unused, &line)
				return line, err
			}, `EXPLAIN QUERY PLAN `+query, args...)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", query, err)
			}
			out[query] = lines
		}
	}
	return out, nil
}
