package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// releaseStart takes the pages of the program's own file that only the start has read out of this process: nearly half of
// them are never read again. They stay the file's, and what is read after all is mapped again, mostly from memory. What can
// be written to is left alone: there, pages that were written to would be lost.
func releaseStart() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	ranges, err := ownPages(maps, self)
	if err = errors.Join(err, maps.Close()); err != nil {
		return err
	}
	for _, r := range ranges {
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, r[0], r[1]-r[0], syscall.MADV_DONTNEED); errno != 0 {
			return errno
		}
	}
	return nil
}

// ownPages are the ranges in a list such as /proc/self/maps, from and to, that are of a file and that nobody can write to.
func ownPages(maps io.Reader, file string) (ranges [][2]uintptr, err error) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to uintptr
		var mode string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); err != nil {
			return nil, err
		}
		_, path, _ := strings.Cut(lines.Text(), "/")
		if (mode == "r--p" || mode == "r-xp") && "/"+path == file { // mutant: pages.written
			ranges = append(ranges, [2]uintptr{from, to})
		}
	}
	return ranges, lines.Err()
}
