"""Events, and how they are posted."""

import http.client
from dataclasses import dataclass

BATCH = 500
STAMP = len(',"timestamp":"2000-01-01T00:00:00.000Z"')  # which the body that is sent has besides
BODY = 1024  # octets that a subscriber is sent


def line(n, kind="reading", asset=None):
    """Event n as it is posted; what a subscriber gets of it is BODY octets long."""
    place = f'"asset":"{asset}",' if asset else ""
    head = f'{{"id":"evt_{n:010}","type":"{kind}",{place}"data":{{"n":{n},"note":"'
    return head + "x" * (BODY - STAMP - len(head) - 3) + '"}}'


@dataclass(frozen=True)
class Shape:
    """What a backlog looks like.  Events without an asset have no order."""
    name: str
    about: str
    events: int = 150_000
    assets: int = 0
    hot: float = 0  # this part, all in front, is of one asset
    subscriptions: int = 1

    def front(self):
        """How many events the one asset in front has."""
        return int(self.hot * self.events)

    def asset(self, n):
        if n < self.front():
            return "hot"
        return f"a{n % self.assets}" if self.assets else None

    def kind(self, n):
        return f"reading.{n % self.subscriptions}"

    def lines(self, first=0):
        """The events of one backlog; another of the same tenant's begins at another number."""
        for n in range(self.events):
            yield line(first + n, self.kind(n), self.asset(n))


class Poster:
    """Posts to ingest on one connection that stays open."""

    def __init__(self, port, key):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.key = key

    def post(self, path, body, media_type):
        self.connection.request("POST", path, body, {
            "Authorization": f"Bearer {self.key}", "Content-Type": media_type})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 202:
            raise RuntimeError(f"{answer.status}: {text[:500]!r}")

    def post_all(self, lines):
        """Events, a line each, BATCH at a time."""
        lines = [line.encode() for line in lines]
        for i in range(0, len(lines), BATCH):
            self.post("/v1/events/batch", b"\n".join(lines[i:i + BATCH]) + b"\n",
                      "application/x-ndjson")

    def close(self):
        self.connection.close()
