package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
)

// defaultConsoleAddr is where the internal listener is where nothing is set.
const defaultConsoleAddr = "127.0.0.1:8081"

// listenInternal opens the listener for what is not for agents or the provider. nil: there is to be none. A second server
// on one machine that names no address of its own takes a free one, and says so.
func listenInternal(ctx context.Context, addr string, log *slog.Logger) (net.Listener, error) {
	if addr == "" || addr == "off" {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && addr == defaultConsoleAddr {
		log.WarnContext(ctx, "COUNTERSIGN_CONSOLE_ADDR is not set and its default is taken: metrics are at another port this time", "taken", addr)
		l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, usage("Nothing can listen at COUNTERSIGN_CONSOLE_ADDR: %v. Set it to a free HOST:PORT that only you reach, or to off.", err)
	}
	log.InfoContext(ctx, "internal listener", "addr", l.Addr().String())
	return l, nil
}

// sameAddr reports two settings that ask for one port.
func sameAddr(a, b string) bool {
	_, port, err := net.SplitHostPort(a)
	return err == nil && a == b && port != "0"
}
