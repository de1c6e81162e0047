package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// maxURL is far above what anybody needs and below what servers refuse.
const maxURL = 2048

// ErrBadEndpointURL says what is wrong with a URL; the text never repeats the URL, which may hold a secret.
var ErrBadEndpointURL = errors.New("not a URL that events can be posted to")

func badURL(why string) error { return fmt.Errorf("%w: %s", ErrBadEndpointURL, why) }

// ParseEndpointURL reads the URL of an agent's backend: https, and http only to the loopback where private addresses
// are allowed. Names are not looked up here: whatever they resolve to is judged when it is dialled.
// Errors: ErrBadEndpointURL.
func ParseEndpointURL(raw string, allowPrivate bool) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || len(raw) > maxURL || u.Opaque != "" || u.Hostname() == "" {
		return nil, badURL("want https://host/path")
	}
	if u.User != nil { // mutant: endpoints-userinfo
		return nil, badURL("a name or password in it would be sent along")
	}
	if strings.Contains(raw, "#") {
		return nil, badURL("a fragment is never sent")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, badURL("the port is no port")
		}
	}
	ip, err := netip.ParseAddr(u.Hostname())
	literal := err == nil
	switch u.Scheme {
	case "https":
	case "http":
		if !allowPrivate || (u.Hostname() != "localhost" && (!literal || !ip.IsLoopback())) { // mutant: endpoints-http
			return nil, badURL("it must be https; http is for the loopback, where private addresses are allowed")
		}
	default:
		return nil, badURL("it must be https")
	}
	if literal && !mayDial(ip, allowPrivate) {
		return nil, badURL("its address is private or no host's")
	}
	return u, nil
}

var errAddressRefused = errors.New("the address may not be called")

// control is the guard against being sent into our own network. It sees the very address that is about to be dialled,
// after names are resolved, so that a name whose answer changes between a check and the call gains nothing.
func control(may func(netip.Addr) bool) func(ctx context.Context, network, address string, c syscall.RawConn) error {
	return func(_ context.Context, network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") || !may(at.Addr()) { // mutant: endpoints-guard
			return errAddressRefused
		}
		return nil
	}
}

// dialer dials what may be dialled, and nothing through a proxy.
func dialer(may func(netip.Addr) bool) *net.Dialer {
	return &net.Dialer{ControlContext: control(may)}
}

// mayDial says whether an endpoint may be at an address: one that is routed on the public internet, or, where the
// operator allows that, one of a private network or the loopback. Link-local ones, where clouds keep their credentials,
// are never allowed.
func mayDial(ip netip.Addr, allowPrivate bool) bool {
	if ip.Zone() != "" || ip.Is4In6() {
		return false
	}
	if within(ip, private) {
		return allowPrivate
	}
	if embedded, ok := nat64(ip); ok { // an IPv4 address behind a translator, whose network is ours
		return allowPrivate && mayDial(embedded, allowPrivate)
	}
	if ip.Is4() {
		return !within(ip, reserved4)
	}
	return ip.Is6() && within(ip, global6) && !within(ip, reserved6)
}

func within(ip netip.Addr, list []netip.Prefix) bool {
	for _, p := range list {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// nat64 takes the IPv4 address out of one of the well-known prefix.
func nat64(ip netip.Addr) (netip.Addr, bool) {
	if !wellKnown.Contains(ip) {
		return netip.Addr{}, false
	}
	b := ip.As16()
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// The registries of special addresses, by what may be done with them.
var (
	private = prefixes(
		"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // private
		"100.64.0.0/10", // shared with a carrier's NAT
		"127.0.0.0/8", "::1/128",
		"fc00::/7",
	)
	reserved4 = prefixes(
		"0.0.0.0/8",
		"169.254.0.0/16",                                    // link-local
		"192.0.0.0/24",                                      // protocol assignments
		"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation
		"192.88.99.0/24", // 6to4 relays
		"198.18.0.0/15",  // benchmarks
		"224.0.0.0/4",    // multicast
		"240.0.0.0/4",    // reserved, and broadcast
	)
	// What of IPv6 is routed at all; everything else (unspecified, link-local, multicast, mapped, local NAT64) is not.
	global6   = prefixes("2000::/3")
	reserved6 = prefixes(
		"2001::/23",                  // protocol assignments, with Teredo
		"2001:db8::/32", "3fff::/20", // documentation
		"2002::/16", // 6to4: an IPv4 address in disguise
	)
	wellKnown = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}
