package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	codes "modernc.org/sqlite/lib"
)

// walVFS names a VFS shim: a file system of SQLite's own that passes everything on to the default one, except that it
// buffers what is written to the write-ahead log. SQLite writes each page of a commit by two system calls, some 20 to 60 for
// a reply; the shim writes pages that follow one another in the WAL by one.
//
// The buffer is flushed before the connection syncs the WAL, reads it, truncates it, asks for its size, closes it or gives up
// the writer's lock, so that nobody can tell the difference: a commit is synced before it is shown to others (synchronous
// FULL), and until then its pages are nobody's but the connection's own.
//
// A checkpoint, which copies pages from the WAL to the database, is not buffered: while a reader still uses the WAL, SQLite
// announces the copy to everybody without a sync, and an error of the disk would come too late to be reported.
const walVFS = "countersign"

// bufferSize is how many bytes a WAL's buffer holds: 31 pages with their headers. SQLite's default VFS takes less than 128
// KiB in one write.
const bufferSize = 31 * (24 + 4096)

// writeLock is the slot of SQLite's shared memory that a connection locks while it writes the WAL (WAL_WRITE_LOCK).
const writeLock = 0

// shimVFS is a VFS in SQLite's memory: what SQLite calls, and the default one that does the work.
type shimVFS struct {
	vfs  codes.Tsqlite3_vfs // first: SQLite's pointer to a VFS points here
	base uintptr
}

// shimFile lies behind the default VFS's own file in SQLite's memory, for a WAL and for the database that it belongs to.
// SQLite calls its methods, most of which are the default's. It holds no pointer into Go's memory.
type shimFile struct {
	methods codes.Tsqlite3_io_methods // first: SQLite's file points to it
	base    *codes.Tsqlite3_io_methods
	peer    uintptr // of a WAL the database's file, and of a database the WAL's; 0: none

	buffer   uintptr // bufferSize bytes; 0: not allocated yet
	buffered int32   // how many bytes of the buffer wait to be written
	offset   int64   // where in the WAL they belong
	failed   int32   // the result code of the flush that lost pages of this transaction; 0 (SQLITE_OK): none were lost
}

// Function types of the methods, as SQLite calls them.
type (
	openFunc     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closeFunc    = func(tls *libc.TLS, file uintptr) int32
	readFunc     = func(tls *libc.TLS, file, to uintptr, n int32, at int64) int32
	writeFunc    = func(tls *libc.TLS, file, bytes uintptr, n int32, at int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc     = func(tls *libc.TLS, file, size uintptr) int32
	shmLockFunc  = func(tls *libc.TLS, file uintptr, first, n, flags int32) int32
)

// registerWALVFS makes walVFS known to SQLite, which keeps it until the process ends.
var registerWALVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	base := codes.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return errors.New("sqlite: no default VFS")
	}
	name, err := libc.CString(walVFS)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	p := libc.Xcalloc(tls, 1, codes.Tsize_t(unsafe.Sizeof(shimVFS{})))
	if p == 0 {
		return errors.New("sqlite: no memory for the VFS")
	}
	fs := memory[shimVFS](p)
	fs.vfs, fs.base = *memory[codes.Tsqlite3_vfs](base), base
	fs.vfs.FpNext, fs.vfs.FzName, fs.vfs.FxOpen = 0, name, address[openFunc](openFile)
	fs.vfs.FszOsFile = aligned(fs.vfs.FszOsFile) + int32(unsafe.Sizeof(shimFile{}))
	if rc := codes.Xsqlite3_vfs_register(tls, p, 0); rc != codes.SQLITE_OK {
		return fmt.Errorf("sqlite: registering the VFS: result %d", rc)
	}
	return nil
})

// memory is what lies at an address of SQLite's, which no collector moves.
func memory[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// address of a function that is not a closure, as SQLite keeps it.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function at an address of SQLite's.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// aligned rounds the size of the default's file up to where a shimFile may begin.
func aligned(size int32) int32 { return (size + 15) &^ 15 }

// shimOf finds the shim of a file that SQLite passes, by the methods that the file points to.
func shimOf(file uintptr) *shimFile {
	return memory[shimFile](memory[codes.Tsqlite3_file](file).FpMethods)
}

// openFile opens any file, and puts a shim before a WAL and its database.
func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	base := memory[codes.Tsqlite3_vfs](memory[shimVFS](vfs).base)
	rc := function[openFunc](base.FxOpen)(tls, memory[shimVFS](vfs).base, name, file, flags, out)
	if rc != codes.SQLITE_OK || flags&(codes.SQLITE_OPEN_WAL|codes.SQLITE_OPEN_MAIN_DB) == 0 {
		return rc
	}
	methods := &memory[codes.Tsqlite3_file](file).FpMethods
	own := file + uintptr(aligned(base.FszOsFile))
	f := memory[shimFile](own)
	*f = shimFile{methods: *memory[codes.Tsqlite3_io_methods](*methods), base: memory[codes.Tsqlite3_io_methods](*methods)}
	if flags&codes.SQLITE_OPEN_MAIN_DB != 0 {
		if f.methods.FiVersion >= 2 {
			f.methods.FxShmLock = address[shmLockFunc](lockShm)
		}
		*methods = own
		return rc
	}
	f.peer = codes.Xsqlite3_database_file_object(tls, name)
	f.methods.FxClose, f.methods.FxRead, f.methods.FxWrite = address[closeFunc](closeWAL), address[readFunc](readWAL), address[writeFunc](writeWAL)
	f.methods.FxTruncate, f.methods.FxSync, f.methods.FxFileSize = address[truncateFunc](truncateWAL), address[syncFunc](syncWAL), address[sizeFunc](sizeOfWAL)
	*methods = own
	shimOf(f.peer).peer = file
	return rc
}

// writeWAL buffers bytes that follow those before them, and flushes first where they do not. After an error neither the buffer
// nor these bytes are in the WAL, and the commit that they were for fails.
func writeWAL(tls *libc.TLS, file, bytes uintptr, n int32, at int64) int32 {
	f := shimOf(file)
	if f.failed != codes.SQLITE_OK { // mutant: sqlite.wal-lost-write
		return f.failed
	}
	if f.buffered > 0 && (at != f.offset+int64(f.buffered) || n > bufferSize-f.buffered) {
		if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
			return rc
		}
	}
	if f.buffer == 0 {
		f.buffer = libc.Xmalloc(tls, bufferSize)
	}
	if f.buffer == 0 || n > bufferSize {
		return function[writeFunc](f.base.FxWrite)(tls, file, bytes, n, at)
	}
	if f.buffered == 0 {
		f.offset = at
	}
	copy(unsafe.Slice(memory[byte](f.buffer), bufferSize)[f.buffered:], unsafe.Slice(memory[byte](bytes), n))
	f.buffered += n
	return codes.SQLITE_OK
}

// flush writes the buffer. Where that fails the whole transaction must fail, not just the statement that is told of it: that
// one may only have read a page, SQLite undoes it alone, and the lost pages are those of the statements before it. So the
// result code stays, and until the lock is given up nothing more is written, read or synced.
func (f *shimFile) flush(tls *libc.TLS, file uintptr) int32 {
	if f.buffered > 0 {
		f.failed = function[writeFunc](f.base.FxWrite)(tls, file, f.buffer, f.buffered, f.offset)
		f.buffered = 0
	}
	return f.failed
}

func syncWAL(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := shimOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK { // mutant: sqlite.wal-sync
		return rc
	}
	return function[syncFunc](f.base.FxSync)(tls, file, flags)
}

func readWAL(tls *libc.TLS, file, to uintptr, n int32, at int64) int32 {
	f := shimOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK { // mutant: sqlite.wal-read
		return rc
	}
	return function[readFunc](f.base.FxRead)(tls, file, to, n, at)
}

func truncateWAL(tls *libc.TLS, file uintptr, size int64) int32 {
	f := shimOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
		return rc
	}
	return function[truncateFunc](f.base.FxTruncate)(tls, file, size)
}

func sizeOfWAL(tls *libc.TLS, file, size uintptr) int32 {
	f := shimOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](f.base.FxFileSize)(tls, file, size)
}

func closeWAL(tls *libc.TLS, file uintptr) int32 {
	f := shimOf(file)
	rc := f.flush(tls, file)
	if f.buffer != 0 {
		libc.Xfree(tls, f.buffer)
	}
	shimOf(f.peer).peer = 0
	if closed := function[closeFunc](f.base.FxClose)(tls, file); closed != codes.SQLITE_OK {
		return closed
	}
	return rc
}

// lockShm flushes before the connection gives up the writer's lock. A transaction whose pages did not fit into memory and which
// was then undone leaves some in the buffer; written later they would overwrite what others have committed meanwhile.
func lockShm(tls *libc.TLS, file uintptr, first, n, flags int32) int32 {
	f := shimOf(file)
	if f.peer != 0 && first == writeLock && flags&codes.SQLITE_SHM_UNLOCK != 0 { // mutant: sqlite.wal-unlock
		wal := shimOf(f.peer)
		_ = wal.flush(tls, f.peer)
		wal.failed = codes.SQLITE_OK // mutant: sqlite.wal-lost-end
	}
	return function[shmLockFunc](f.base.FxShmLock)(tls, file, first, n, flags)
}
