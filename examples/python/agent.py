"""A worked agent.

It puts one action to a person, waits for the answer, and does exactly what was
approved, once, also when it is killed at any point and started again.
README.md says how to run it.
"""

import json
import os
import re
import sys

from client import Client, Problem, args_sha256
from inbox import Inbox
from webhook import listen


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        return wrong_use("usage: python3 examples/python/agent.py TASK.json")
    # The task's id must stay the same from one start to the next: the
    # Idempotency-Keys are made of it, so that a second start finds the offer of
    # the first.
    with open(argv[1], encoding="utf-8") as f:
        task = json.load(f)
    key, person = os.environ.get("COUNTERSIGN_KEY"), os.environ.get("COUNTERSIGN_PERSON")
    if not key or not person:
        return wrong_use("set COUNTERSIGN_KEY and COUNTERSIGN_PERSON")
    client = Client(os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8080"), key)
    outbox = Outbox(os.environ.get("AGENT_OUTBOX", "outbox.jsonl"))
    inbox = Inbox(client, say)
    secret = os.environ.get("COUNTERSIGN_WEBHOOK_SECRET")
    if secret:
        listen(os.environ.get("COUNTERSIGN_WEBHOOK_ADDR", "127.0.0.1:8090"), secret, inbox.hear, say)
    try:
        return 0 if work(client, task, person, outbox, inbox) else 1
    except Problem as problem:
        # 422 is the gate, or the arguments: trying again changes nothing, and
        # there is no way around it.
        say(f"refused: {problem.code}: {problem.detail}")
        return 1


def wrong_use(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2


def say(line: str) -> None:
    """Logs ids, states and codes. Arguments, texts, addresses and keys stay out."""
    sys.stdout.write(line + "\n")  # in one piece: webhooks come in another thread
    sys.stdout.flush()


def work(client: Client, task: dict, person: str, outbox: "Outbox", inbox: Inbox) -> bool:
    """Proposes, waits, and goes by the answer; True if the action succeeded.

    A person who changes something gets a new offer that replaces the old one.
    """
    args, supersedes, revision = task["args"], None, 1
    while True:
        offer = client.propose(f"{task['id']}-{revision}", person, task["tool"], args, supersedes)
        inbox.expect(offer["operation_id"])
        say(f"asked: operation {offer['operation_id']}")
        operation = client.wait(offer["operation_id"])
        state = operation["state"]
        say(f"answer: {state}")
        if state in ("approved", "running", "succeeded", "failed"):
            return carry_out(client, outbox, operation["id"], args)
        if state != "modified":
            # declined, expired, withdrawn, superseded, undeliverable, lapsed:
            # no yes, so nothing is done
            return False
        message = operation["offer"]["closed_by"]["message_id"]
        # As a webhook brought it, or else from the feed, which has everything.
        text = inbox.text(message) or client.text(message)
        revised = revise(args, text)
        if revised is None:
            say("the change was not understood; nothing was done")
            return False
        args, supersedes, revision = revised, operation["offer"]["id"], revision + 1


def carry_out(client: Client, outbox: "Outbox", operation: str, args: dict) -> bool:
    """Begins, acts and reports. Only the first begin of an operation succeeds,
    whoever calls it."""
    try:
        released = client.begin(operation, args_sha256(args))
    except Problem as problem:
        if problem.code != "already_begun":
            raise
        if problem.result:
            say(f"closed before: {problem.result['status']}")
            return problem.result["status"] == "succeeded"
        # An earlier start of this agent died between begin and result. Whether
        # it had acted is for its own outbox to say; if that does not know, the
        # action is reported as failed. It is never done a second time on a guess.
        status = "succeeded" if outbox.has(operation) else "failed"
        say(f"begun before: operation {operation}")
    else:
        try:
            outbox.send(operation, released)
            status = "succeeded"
            say(f"acted: operation {operation}")
        except OSError:
            status = "failed"
    client.result(operation, status)
    say(f"result: {status}")
    return status == "succeeded"


CONTACTS = {"dana": "dana@example.com", "sam": "sam@example.com"}


def revise(args: dict, text: str) -> dict | None:
    """Works a change into the arguments; None if it is not understood.

    This is where a real agent asks its model. The person sees what came of it
    and has the last word again, so that a misunderstanding costs a text and
    nothing else.
    """
    said = re.search(r"\bcc\s+([a-z]+)", text, re.IGNORECASE)
    address = CONTACTS.get(said.group(1).lower()) if said else None
    return {**args, "cc": [address]} if address else None


class Outbox:
    """Stands for the outside world: the action is a line in a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def send(self, operation: str, args: dict) -> None:
        """Writes the line with the operation's id, which a mail service would
        take as its own idempotency key."""
        with open(self.path, "a", encoding="utf-8") as f:
            f.write(json.dumps({"operation": operation, "args": args}, ensure_ascii=False) + "\n")
            f.flush()
            os.fsync(f.fileno())

    def has(self, operation: str) -> bool:
        try:
            with open(self.path, encoding="utf-8") as f:
                return any(f'"operation": "{operation}"' in line for line in f)
        except FileNotFoundError:
            return False


if __name__ == "__main__":
    sys.exit(main(sys.argv))
