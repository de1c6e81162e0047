package api

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/countersign/countersign/offers"
)

func TestGuardAddresses(t *testing.T) {
	const public, inner, never = "public", "private", "never"
	for _, c := range []struct{ ip, want string }{
		{"93.184.215.14", public}, {"1.1.1.1", public}, {"100.63.255.255", public}, {"100.128.0.1", public}, {"172.15.255.255", public},
		{"172.32.0.1", public}, {"192.167.255.255", public}, {"169.253.255.255", public}, {"198.17.255.255", public}, {"223.255.255.255", public},
		{"2606:2800:21f:cb07:6820:80da:af6b:8b2c", public}, {"2001:4860:4860::8888", public}, {"2001:200::1", public},

		{"10.0.0.1", inner}, {"10.255.255.255", inner}, {"172.16.0.1", inner}, {"172.31.255.255", inner}, {"192.168.1.1", inner},
		{"127.0.0.1", inner}, {"127.255.255.254", inner}, {"::1", inner}, {"100.64.0.1", inner}, {"100.127.255.255", inner},
		{"fc00::1", inner}, {"fd12:3456::1", inner},
		{"64:ff9b::5db8:d70e", inner}, {"64:ff9b::a00:1", inner}, {"64:ff9b::7f00:1", inner},

		{"0.0.0.0", never}, {"0.1.2.3", never}, {"::", never}, {"169.254.169.254", never}, {"169.254.0.1", never},
		{"fe80::1", never}, {"fe80::1%eth0", never}, {"fd12::1%eth0", never}, {"fec0::1", never},
		{"224.0.0.1", never}, {"239.255.255.255", never}, {"ff02::1", never}, {"240.0.0.1", never}, {"255.255.255.255", never},
		{"192.0.0.8", never}, {"192.0.2.1", never}, {"198.51.100.1", never}, {"203.0.113.1", never}, {"192.88.99.1", never},
		{"198.18.0.1", never}, {"198.19.255.255", never},
		{"::ffff:127.0.0.1", never}, {"::ffff:10.0.0.1", never}, {"::ffff:169.254.169.254", never}, {"::ffff:93.184.215.14", never},
		{"::127.0.0.1", never}, {"64:ff9b::a9fe:a9fe", never}, {"64:ff9b:1::a00:1", never},
		{"2001::1", never}, {"2001:db8::1", never}, {"2002:7f00:1::1", never}, {"2002:a00:1::", never}, {"3fff::1", never},
		{"100::1", never}, {"4000::1", never}, {"5f00::1", never},
	} {
		ip := netip.MustParseAddr(c.ip)
		if got := mayDial(ip, false); got != (c.want == public) {
			t.Errorf("%s, private ones not allowed: %v", c.ip, got)
		}
		if got := mayDial(ip, true); got != (c.want != never) {
			t.Errorf("%s, private ones allowed: %v", c.ip, got)
		}
	}
	if mayDial(netip.Addr{}, true) {
		t.Error("no address at all may be dialled")
	}
}

func TestGuardURLs(t *testing.T) {
	const public, inner, never = "public", "private", "never"
	for _, c := range []struct{ url, want string }{
		{"https://agent.example.com/events", public}, {"https://agent.example.com:8443/?k=v", public}, {"https://93.184.215.14/", public},
		{"https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443/x", public}, {"HTTPS://agent.example.com", public},
		{"https://localhost/", public}, // a name: what it resolves to is judged when it is dialled

		{"https://127.0.0.1:9000/", inner}, {"https://10.0.0.1/", inner}, {"https://[::1]/", inner}, {"http://localhost:9000/", inner},
		{"http://127.0.0.1:9000/", inner}, {"http://[::1]:9000/", inner},

		{"http://agent.example.com/", never}, {"http://10.0.0.1/", never}, {"http://93.184.215.14/", never}, {"http://localhost.example.com/", never},
		{"https://169.254.169.254/latest/meta-data", never}, {"https://[::ffff:127.0.0.1]/", never}, {"https://0.0.0.0/", never},
		{"https://[fe80::1%25eth0]/", never},
		{"https://user@agent.example.com/", never}, {"https://user:pw@agent.example.com/", never}, {"https://@agent.example.com/", never},
		{"https://agent.example.com/#x", never}, {"https://agent.example.com/#", never},
		{"https://agent.example.com:0/", never}, {"https://agent.example.com:65536/", never}, {"https://agent.example.com:/", never},
		{"https:///events", never}, {"https:agent.example.com", never}, {"//agent.example.com/", never}, {"agent.example.com", never}, {"", never},
		{"ftp://agent.example.com/", never}, {"file:///etc/passwd", never}, {"gopher://127.0.0.1:6379/_x", never},
		{"https://agent.example.com/\r\nX: y", never}, {"https://agent .example.com/", never}, {"https://a/" + strings.Repeat("x", 2048), never},
	} {
		for _, allow := range []bool{false, true} {
			want := c.want == public || (allow && c.want == inner)
			_, err := ParseEndpointURL(c.url, allow)
			if (err == nil) != want {
				t.Errorf("%q, private ones allowed %v: %v", c.url, allow, err)
			}
			if err != nil && (!errors.Is(err, ErrBadEndpointURL) || strings.Contains(err.Error(), "user") || strings.Contains(err.Error(), "pw")) {
				t.Errorf("%q: %v", c.url, err)
			}
		}
	}
}

// Names are judged by what is dialled, for every call: whatever they resolved to before.
func TestGuardNamesWhenTheyAreDialled(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	_, port, err := net.SplitHostPort(b.Listener.Addr().String())
	must(t, err)
	names := func(c *DeliverConfig) { c.Lookup = nameServer(t, [4]byte{127, 0, 0, 1}) }
	e := o.add("https://agent.example.com:" + port + "/")
	o.happen(1)
	o.once(o.deliverer(names, func(c *DeliverConfig) { c.AllowPrivate = false }), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedAddress {
		t.Fatalf("endpoint %+v", got)
	}
	// The same call where private addresses are allowed gets through to the server, which does not speak TLS.
	o.advance(10 * 60e9)
	b.Config.ErrorLog = nil
	o.once(o.deliverer(names), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedTLS {
		t.Fatalf("endpoint %+v", got)
	}
	// Clouds keep credentials on a link-local address.
	o.advance(10 * 60e9)
	o.once(o.deliverer(func(c *DeliverConfig) { c.Lookup = nameServer(t, [4]byte{169, 254, 169, 254}) }), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedAddress {
		t.Fatalf("endpoint %+v", got)
	}
}

// An endpoint that was added where private addresses were allowed is not called where they are not.
func TestGuardWhatWasStoredBefore(t *testing.T) {
	o := newOffice(t)
	b := newBackend(t, takes)
	e := o.add(b.URL)
	o.happen(1)
	o.once(o.deliverer(func(c *DeliverConfig) { c.AllowPrivate = false }), true)
	if got := o.endpoint(e.ID); got.LastFailure != offers.FailedAddress || len(b.got()) != 0 {
		t.Fatalf("endpoint %+v", got)
	}
}

func TestGuardTheClients(t *testing.T) {
	for _, allow := range []bool{false, true} {
		d := NewDeliverer(nil, nil, nil, DeliverConfig{AllowPrivate: allow})
		for name, c := range map[string]*http.Client{"https": d.https, "http": d.http} {
			tr, ok := c.Transport.(*http.Transport)
			if !ok || tr.Proxy != nil {
				t.Errorf("%s has a proxy, which would dial past the guard", name)
				continue
			}
			if _, err := tr.DialContext(t.Context(), "tcp", "169.254.169.254:80"); !errors.Is(err, errAddressRefused) {
				t.Errorf("%s, private ones allowed %v, dials a link-local address: %v", name, allow, err)
			}
		}
		tr := d.http.Transport.(*http.Transport) // seen above to be one
		if _, err := tr.DialContext(t.Context(), "tcp", "10.0.0.1:80"); !errors.Is(err, errAddressRefused) {
			t.Errorf("http, private ones allowed %v, goes beyond the loopback: %v", allow, err)
		}
		if _, err := tr.DialContext(t.Context(), "tcp", "127.0.0.1:1"); errors.Is(err, errAddressRefused) != !allow {
			t.Errorf("http to the loopback, allowed %v: %v", allow, err)
		}
	}
	for _, c := range []struct{ network, address string }{{"udp4", "93.184.215.14:53"}, {"tcp4", "nonsense"}, {"tcp4", ""}, {"unix", "/tmp/x"}} {
		err := control(func(netip.Addr) bool { return true })(t.Context(), c.network, c.address, nil)
		if !errors.Is(err, errAddressRefused) {
			t.Errorf("%s %q: %v", c.network, c.address, err)
		}
	}
}

// nameServer answers every question for an IPv4 address with ip, and others with nothing.
func nameServer(t *testing.T, ip [4]byte) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close() })
		go func() {
			defer ours.Close() //nolint:errcheck // a test's pipe
			var size [2]byte
			for {
				if _, err := io.ReadFull(ours, size[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(ours, q); err != nil {
					return
				}
				end := 12
				for q[end] != 0 {
					end += int(q[end]) + 1
				}
				end += 5
				a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
				if kind := binary.BigEndian.Uint16(q[end-4:]); kind == 1 {
					a[7] = 1
					a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
					a = append(a, ip[:]...)
				}
				if _, err := ours.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil { //nolint:gosec // short
					return
				}
			}
		}()
		return theirs, nil
	}
}
