package sqlite

import (
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	codes "modernc.org/sqlite/lib"
)

// logVFS is the file system of SQLite's own that a writing connection opens its file with. It differs from the default in
// how the write-ahead log is written: SQLite writes each page of a commit by two system calls, some 20 to 60 for a reply,
// and here the pages that follow one another in the log are gathered and written by one.
//
// What is gathered stands in the log before the connection syncs it, reads it, cuts it, asks for its size, closes it or
// gives up the lock of who writes, so that nobody can tell the difference: a commit is synced before it is shown to others
// (synchronous FULL), and until then its pages are nobody's but the connection's own.
//
// What SQLite copies from the log to the database is not gathered: where somebody still reads the log, all are told of the
// copy without a sync, so that nobody would hear of what the disk did not take.
const logVFS = "countersign"

// gathered is how many bytes are kept at most: 31 pages. SQLite's own file takes less than 128 KiB in one write.
const gathered = 31 * (24 + 4096)

// writeLock is the lock in the shared memory that a connection holds while it writes the log.
const writeLock = 0

// fileSystem is a file system in SQLite's memory: what SQLite knows of, and the one that does the work.
type fileSystem struct {
	vfs  codes.Tsqlite3_vfs
	base uintptr
}

// logFile stands behind the base's own file in SQLite's memory: of a log, and of the database that it belongs to. SQLite
// calls its methods, which are the base's but for a few. It holds no pointer to memory of Go's.
type logFile struct {
	methods codes.Tsqlite3_io_methods // first: what SQLite's file points to
	base    *codes.Tsqlite3_io_methods
	other   uintptr // the database's file of a log, and the log of a database's; 0: none

	bytes uintptr // what is gathered; 0: nothing yet
	n     int32
	from  int64 // where in the log it belongs
	lost  int32 // why pages of the transaction are not in the log; 0: all are
}

// Function types of the methods, as SQLite calls them.
type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	closeFunc = func(tls *libc.TLS, file uintptr) int32
	readFunc  = func(tls *libc.TLS, file, to uintptr, n int32, at int64) int32
	writeFunc = func(tls *libc.TLS, file, bytes uintptr, n int32, at int64) int32
	cutFunc   = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc  = func(tls *libc.TLS, file, size uintptr) int32
	lockFunc  = func(tls *libc.TLS, file uintptr, first, n, flags int32) int32
)

// registerLogVFS makes logVFS known to SQLite, which keeps it until the process ends.
var registerLogVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS()
	defer tls.Close()
	base := codes.Xsqlite3_vfs_find(tls, 0)
	if base == 0 {
		return fmt.Errorf("sqlite: no file system")
	}
	name, err := libc.CString(logVFS)
	if err != nil {
		return fmt.Errorf("sqlite: %w", err)
	}
	p := libc.Xcalloc(tls, 1, codes.Tsize_t(unsafe.Sizeof(fileSystem{})))
	if p == 0 {
		return fmt.Errorf("sqlite: no memory for a file system")
	}
	fs := memory[fileSystem](p)
	fs.vfs, fs.base = *memory[codes.Tsqlite3_vfs](base), base
	fs.vfs.FpNext, fs.vfs.FzName, fs.vfs.FxOpen = 0, name, address[openFunc](openFile)
	fs.vfs.FszOsFile = behind(fs.vfs.FszOsFile) + int32(unsafe.Sizeof(logFile{}))
	if rc := codes.Xsqlite3_vfs_register(tls, p, 0); rc != codes.SQLITE_OK {
		return fmt.Errorf("sqlite: a file system is not taken: %d", rc)
	}
	return nil
})

// memory is what lies at an address of SQLite's, which no collector moves.
func memory[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// address of a function that is not a closure, as SQLite keeps it.
func address[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function at an address of SQLite's.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// behind is where in a file's memory ours begins: behind so many bytes of the base's.
func behind(size int32) int32 { return (size + 15) &^ 15 }

// logOf finds ours by the methods that SQLite's file has.
func logOf(file uintptr) *logFile {
	return memory[logFile](memory[codes.Tsqlite3_file](file).FpMethods)
}

// openFile opens any file; of a log and its database some methods are replaced.
func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32 {
	base := memory[codes.Tsqlite3_vfs](memory[fileSystem](vfs).base)
	rc := function[openFunc](base.FxOpen)(tls, memory[fileSystem](vfs).base, name, file, flags, out)
	if rc != codes.SQLITE_OK || flags&(codes.SQLITE_OPEN_WAL|codes.SQLITE_OPEN_MAIN_DB) == 0 {
		return rc
	}
	methods := &memory[codes.Tsqlite3_file](file).FpMethods
	place := file + uintptr(behind(base.FszOsFile))
	f := memory[logFile](place)
	*f = logFile{methods: *memory[codes.Tsqlite3_io_methods](*methods), base: memory[codes.Tsqlite3_io_methods](*methods)}
	if flags&codes.SQLITE_OPEN_MAIN_DB != 0 {
		if f.methods.FiVersion >= 2 {
			f.methods.FxShmLock = address[lockFunc](lockShared)
		}
		*methods = place
		return rc
	}
	f.other = codes.Xsqlite3_database_file_object(tls, name)
	f.methods.FxClose, f.methods.FxRead, f.methods.FxWrite = address[closeFunc](closeLog), address[readFunc](readLog), address[writeFunc](writeLog)
	f.methods.FxTruncate, f.methods.FxSync, f.methods.FxFileSize = address[cutFunc](cutLog), address[syncFunc](syncLog), address[sizeFunc](sizeOfLog)
	*methods = place
	logOf(f.other).other = file
	return rc
}

// writeLog gathers bytes that follow those before them. An error says that what was gathered is not in the log, and neither
// is this: the commit that it was for fails.
func writeLog(tls *libc.TLS, file, bytes uintptr, n int32, at int64) int32 {
	f := logOf(file)
	if f.lost != codes.SQLITE_OK { // mutant: sqlite.log-lost-write
		return f.lost
	}
	if f.n > 0 && (at != f.from+int64(f.n) || n > gathered-f.n) {
		if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
			return rc
		}
	}
	if f.bytes == 0 {
		f.bytes = libc.Xmalloc(tls, gathered)
	}
	if f.bytes == 0 || n > gathered {
		return function[writeFunc](f.base.FxWrite)(tls, file, bytes, n, at)
	}
	if f.n == 0 {
		f.from = at
	}
	copy(unsafe.Slice(memory[byte](f.bytes), gathered)[f.n:], unsafe.Slice(memory[byte](bytes), n))
	f.n += n
	return codes.SQLITE_OK
}

// flush writes what is gathered. What cannot be written is dropped, and with it the whole transaction: whoever hears of the
// error may be a statement that read a page, which SQLite undoes alone, and the pages are those of the statements before it.
// Until the lock is given up nothing more is written, read or synced.
func (f *logFile) flush(tls *libc.TLS, file uintptr) int32 {
	if f.n > 0 {
		f.lost = function[writeFunc](f.base.FxWrite)(tls, file, f.bytes, f.n, f.from)
		f.n = 0
	}
	return f.lost
}

func syncLog(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := logOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK { // mutant: sqlite.log-sync
		return rc
	}
	return function[syncFunc](f.base.FxSync)(tls, file, flags)
}

func readLog(tls *libc.TLS, file, to uintptr, n int32, at int64) int32 {
	f := logOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK { // mutant: sqlite.log-read
		return rc
	}
	return function[readFunc](f.base.FxRead)(tls, file, to, n, at)
}

func cutLog(tls *libc.TLS, file uintptr, size int64) int32 {
	f := logOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
		return rc
	}
	return function[cutFunc](f.base.FxTruncate)(tls, file, size)
}

func sizeOfLog(tls *libc.TLS, file, size uintptr) int32 {
	f := logOf(file)
	if rc := f.flush(tls, file); rc != codes.SQLITE_OK {
		return rc
	}
	return function[sizeFunc](f.base.FxFileSize)(tls, file, size)
}

func closeLog(tls *libc.TLS, file uintptr) int32 {
	f := logOf(file)
	rc := f.flush(tls, file)
	if f.bytes != 0 {
		libc.Xfree(tls, f.bytes)
	}
	logOf(f.other).other = 0
	if closed := function[closeFunc](f.base.FxClose)(tls, file); closed != codes.SQLITE_OK {
		return closed
	}
	return rc
}

// lockShared writes what is gathered before the connection lets others write the log. That is left over where a transaction
// was undone whose pages did not fit into memory, and is nobody's: written later it would destroy what others have committed.
func lockShared(tls *libc.TLS, file uintptr, first, n, flags int32) int32 {
	f := logOf(file)
	if f.other != 0 && first == writeLock && flags&codes.SQLITE_SHM_UNLOCK != 0 { // mutant: sqlite.log-unlock
		log := logOf(f.other)
		_ = log.flush(tls, f.other)
		log.lost = codes.SQLITE_OK // mutant: sqlite.log-lost-end
	}
	return function[lockFunc](f.base.FxShmLock)(tls, file, first, n, flags)
}
