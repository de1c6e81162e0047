"""Signed events: the Standard Webhooks scheme, by hand."""

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from client import Problem

# How far a delivery's time may be off, in seconds. Within it a repeated delivery
# is known by its id.
TOLERANCE = 5 * 60
MAX_BODY = 1 << 20


class Forged(Exception):
    """The delivery is not from whoever has the secret, or not from now."""


def secret_key(secret: str) -> bytes:
    """Reads a secret. An empty one would sign what anybody can sign."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith("whsec_") or len(key) < 24:
        raise SystemExit("COUNTERSIGN_WEBHOOK_SECRET must be the whsec_… that bot endpoints add printed")
    return key


def verify(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> None:
    """Raises Forged unless the signature fits: an HMAC-SHA-256 over id, time and
    the very bytes of the body. A header may carry several, from a secret that is
    being changed for another."""
    message_id, stamp = headers.get("webhook-id") or "", headers.get("webhook-timestamp") or ""
    if not message_id or not stamp.isascii() or not stamp.isdigit():
        raise Forged("headers are missing")
    if abs(now - int(stamp)) > TOLERANCE:
        raise Forged("too old or too new")
    mac = hmac.new(key, f"{message_id}.{stamp}.".encode() + body, hashlib.sha256)
    want = b"v1," + base64.b64encode(mac.digest())
    for signature in (headers.get("webhook-signature") or "").split():
        if hmac.compare_digest(signature.encode(), want):
            return
    raise Forged("no signature fits")


def listen(address: str, secret: str, hear: Callable[[dict], None], say: Callable[[str], None]) -> None:
    """Serves the endpoint in a thread, for as long as the process lives. Each
    event goes to hear; an exception of hear brings it again."""
    key = secret_key(secret)
    lock = threading.Lock()  # deliveries come one at a time; a repetition waits for the first
    heard: set[str] = set()  # by the event's id; an agent with a database keeps it there

    class Endpoint(BaseHTTPRequestHandler):
        timeout = 10  # seconds, for a peer that sends nothing

        def do_POST(self) -> None:
            """Nothing of a body is looked at before its signature has been
            checked, and 204 is said only when the event has been taken: anything
            else brings it again."""
            length = self.headers.get("Content-Length") or ""
            if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY:
                return self._answer(400)
            body = self.rfile.read(int(length))
            try:
                verify(key, self.headers, body, time.time())
            except Forged as why:
                say(f"delivery refused: {why}")
                return self._answer(401)
            event = json.loads(body)
            with lock:
                if event["id"] not in heard:
                    try:
                        hear(event)
                    except (OSError, Problem):
                        return self._answer(503)
                    heard.add(event["id"])
                    say(f"event {event['seq']}: {event['type']}")
            self._answer(204)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The log is the agent's own."""

    host, _, port = address.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"webhooks: http://{host}:{server.server_port}/")
