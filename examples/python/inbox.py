"""What webhooks told the agent."""

import threading
from collections.abc import Callable

from client import Client

# How often the person is asked again about one offer, at most, so that two
# machines never talk all night.
MAX_QUESTIONS = 2


class Inbox:
    """An agent with a database keeps this there."""

    def __init__(self, client: Client, say: Callable[[str], None]) -> None:
        self._client, self._say = client, say
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}  # by the message's id
        self._questions: dict[str, int] = {}  # that are left, by the operation's id

    def expect(self, operation: str) -> None:
        """Says that answers about an operation are this agent's business: an
        endpoint gets the events of all agents."""
        with self._lock:
            self._questions[operation] = MAX_QUESTIONS

    def hear(self, event: dict) -> None:
        """Takes an event, whose signature was checked."""
        data = event["data"]
        if event["type"] == "message.received":
            with self._lock:
                self._texts[data["message_id"]] = data["text"]
        elif event["type"] == "reply.unresolved" and self._may_ask(data.get("offers", [])):
            # The text was neither a sure yes nor a no, and the offer is still
            # open. The question goes out in the message's own run; the server
            # puts the offer's last line below it. The event's id as the key: one
            # event, one question.
            sent = self._client.send(event["id"], data["run_id"], "I am not sure what you want.")
            self._say(f"asked again: operation {sent['id']}")

    def _may_ask(self, open_offers: list[dict]) -> bool:
        with self._lock:
            for offer in open_offers:
                left = self._questions.get(offer["operation_id"], 0)
                if left > 0:
                    self._questions[offer["operation_id"]] = left - 1
                    return True
        return False

    def text(self, message: str) -> str | None:
        with self._lock:
            return self._texts.get(message)
