"""The agent's side of the HTTP API, with the standard library alone."""

import hashlib
import json
import time
import urllib.error
import urllib.parse
import urllib.request


class Problem(Exception):
    """A refusal: an RFC 9457 document. code is what to switch on."""

    def __init__(self, status: int, document: dict) -> None:
        self.status = status
        self.code = document.get("code", "")
        self.detail = document.get("detail", "")
        self.result = document.get("result")  # with already_begun: what was reported, if anything was
        super().__init__(f"{status} {self.code}: {self.detail}")


class Client:
    def __init__(self, base: str, key: str) -> None:
        self.base, self.key = base, key

    def propose(self, idempotency_key: str, address: str, tool: str, args: dict, supersedes: str | None) -> dict:
        """Asks for an offer. The same key with the same body gets the earlier one."""
        body = {"address": address, "tool": tool, "args": args}
        if supersedes:
            body["supersedes"] = supersedes
        return self._call("POST", "/v1/offers", body, {"Idempotency-Key": idempotency_key})

    def wait(self, operation: str) -> dict:
        """Returns the operation once it is decided. Each call hangs until then,
        or for half a minute."""
        while True:
            found = self._call("GET", f"/v1/operations/{operation}?wait=30s")
            # settling is a yes that the person can still take back.
            if found["state"] not in ("asked", "settling"):
                return found

    def begin(self, operation: str, sha256: str) -> dict:
        """Names what is about to run and gets the exact approved arguments, once."""
        return self._call("POST", f"/v1/operations/{operation}/begin", {"args_sha256": sha256})["args"]

    def result(self, operation: str, status: str) -> None:
        """Closes the operation; the person gets a receipt."""
        self._call("POST", f"/v1/operations/{operation}/result", {"status": status, "output": {}})

    def send(self, idempotency_key: str, run: str, text: str) -> dict:
        """Texts the person whose message started the run. It needs no yes: it is
        an answer."""
        body = {"run_id": run, "kind": "outbound_message", "tool": "message.send", "args": {"text": text}}
        return self._call("POST", "/v1/operations", body, {"Idempotency-Key": idempotency_key})

    def text(self, message: str) -> str:
        """Finds a message of the person in the feed. An agent that lives longer
        keeps next, and reads on from there."""
        after = ""
        while True:
            query = urllib.parse.urlencode({"after": after, "wait": "10s"})
            page = self._call("GET", f"/v1/events?{query}")
            for event in page["events"]:
                if event["type"] == "message.received" and event["data"]["message_id"] == message:
                    return event["data"]["text"]
            if not page["events"]:
                raise LookupError("the feed does not have the message")
            after = page["next"]

    def _call(self, method: str, path: str, body: dict | None = None, headers: dict | None = None) -> dict:
        """Makes one call and repeats it when the network or the server fails.

        That is safe everywhere: an offer by its Idempotency-Key, a begin and a
        result because a second one is told of the first.
        """
        request = urllib.request.Request(self.base + path, method=method, headers=headers or {})
        request.add_header("Authorization", f"Bearer {self.key}")
        if body is not None:
            request.data = json.dumps(body, ensure_ascii=False).encode()
            request.add_header("Content-Type", "application/json")
        tries = 6
        for attempt in range(tries):
            try:
                with urllib.request.urlopen(request, timeout=90) as answer:  # longer than the longest wait
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                problem = Problem(error.code, _document(error.read()))
                if error.code != 429 and error.code < 500 or attempt == tries - 1:
                    raise problem from None
            except (OSError, json.JSONDecodeError):
                if attempt == tries - 1:
                    raise
            time.sleep(0.2 * 2**attempt)
        raise AssertionError("unreachable")


def _document(raw: bytes) -> dict:
    """Whatever else answered with an error is a problem without a code."""
    try:
        document = json.loads(raw)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def args_sha256(args: dict) -> str:
    """The SHA-256 of the arguments' canonical form, in hexadecimal."""
    return hashlib.sha256(canonical(args)).hexdigest()


def canonical(args: dict) -> bytes:
    """JSON as RFC 8785 has it: sorted keys, no space, nothing escaped that need
    not be. Python writes fractions in another way than the RFC, so they are
    refused here: take a library, or send begin the args instead of their hash."""
    _no_fractions(args)
    return json.dumps(args, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _no_fractions(value: object) -> None:
    if isinstance(value, float):
        raise ValueError("write fractions as strings")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _no_fractions(inner)
