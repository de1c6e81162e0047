package main

import (
	"crypto/sha256"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/countersign/countersign/classifier/local"
)

// Of the program's own file only what nobody can write to is let go: pages that were written to would be lost.
func TestOwnPages(t *testing.T) {
	const maps = `00400000-017ea000 r-xp 00000000 fe:00 9978402                            /usr/local/bin/bot
017ea000-02e92000 r--p 013ea000 fe:00 9978402                            /usr/local/bin/bot
02e92000-03929000 rw-p 02a92000 fe:00 9978402                            /usr/local/bin/bot
03929000-0597b000 rw-p 00000000 00:00 0 
7f201f540000-7f201f700000 r--p 00000000 fe:00 326269                     /usr/local/bin/bot.d/other
7f301f540000-7f301f700000 r--p 00000000 00:00 0 
7ffc0a1f2000-7ffc0a213000 rw-p 00000000 00:00 0                          [stack]
`
	got, err := ownPages(strings.NewReader(maps), "/usr/local/bin/bot")
	if err != nil || !slices.Equal(got, [][2]uintptr{{0x400000, 0x17ea000}, {0x17ea000, 0x2e92000}}) {
		t.Errorf("got %x, %v", got, err)
	}
	if _, err := ownPages(strings.NewReader("nonsense\n"), "/usr/local/bin/bot"); err == nil {
		t.Error("what is no list of pages was read as one")
	}
}

// A process that has let its pages go reads the same from them again, and what it has written stays.
func TestReleaseStart(t *testing.T) {
	before, written := sha256.Sum256(local.CalibrationFile()), os.Args[0]
	if err := releaseStart(); err != nil {
		t.Fatal(err)
	}
	if sha256.Sum256(local.CalibrationFile()) != before || os.Args[0] != written {
		t.Error("the program is not what it was")
	}
	if _, err := local.New(); err != nil {
		t.Error(err)
	}
}
