"""What happened in one round: asked, acknowledged, seen, and kept.

Times are seconds of CLOCK_MONOTONIC, as all of the checker's own threads see it.
What has to be held against PostgreSQL's times carries `wall` too, of the same
machine's CLOCK_REALTIME.  A history is plain data: it goes to JSON and back, so
that a bad one can be kept and judged again.
"""

import dataclasses
import json
from dataclasses import dataclass, field

# An answer that says: committed.  Everything but these, 504 and no answer at all
# says: nothing was kept.
KEPT = (200, 202)
OPEN = (None, 504)


@dataclass
class Subscription:
    number: int           # also the last segment of its URL
    id: int               # in the database
    tenant: str
    secret: str
    types: list
    ordering: str


@dataclass
class Change:
    """A field of a subscription got a value at some time from asked to answered."""

    subscription: int
    field: str
    value: object
    asked: float
    answered: float


@dataclass
class Order:
    """Something else that an operator asked for: retry, discard, replay..."""

    kind: str
    subscription: int
    asked: float
    answered: float
    status: int
    detail: dict = field(default_factory=dict)


@dataclass
class Try:
    asked: float
    answered: float
    status: object        # None: no answer came


@dataclass
class Post:
    tenant: str
    id: str
    type: str
    asset: object
    data: str             # JSON, as it was written
    named: object         # numbers of subscriptions, or None
    batch: object = None  # number of the batch that it was a line of
    line: int = 0
    tries: list = field(default_factory=list)

    @property
    def asked(self):
        return self.tries[0].asked

    @property
    def acknowledged(self):
        """When the first answer came that says it is kept, or None."""
        return min((t.answered for t in self.tries if t.status in KEPT), default=None)

    @property
    def was_refused(self):
        """Whether nothing may be left of it."""
        return all(t.status not in (*KEPT, *OPEN) for t in self.tries)


@dataclass
class Request:
    """One request that the receiver read, from when its first octets arrived."""

    number: int
    subscription: int
    worker: object        # number of the dispatcher process; None: gone already
    began: float
    wall: float
    behaviour: str
    method: str
    headers: dict         # names in lower case
    body: str             # Latin-1, so that every octet is kept
    ended: object = None  # before the answer was written, or when the sender left
    status: object = None  # of a whole answer; None if there was none

    @property
    def event_id(self):
        return self.headers.get("webhook-id", "")

    @property
    def position(self):
        return int(self.headers.get("postrider-position", 0))

    @property
    def attempt(self):
        return int(self.headers.get("postrider-attempt", 0))


@dataclass
class Worker:
    """A dispatcher process.  Frozen: from before SIGSTOP to after SIGCONT."""

    number: int
    pid: int
    frozen: list = field(default_factory=list)


@dataclass
class Fault:
    kind: str
    target: str
    began: float
    ended: float


# -- the database's own record, once everything has come to rest --

@dataclass
class EventRow:
    tenant: str
    event_id: str
    number: int
    type: str
    asset: object
    fan_out: int
    body: str
    committed: float      # wall


@dataclass
class DeliveryRow:
    id: int
    event: int
    subscription_id: int
    state: str
    generation: int
    attempts: int
    waits: object         # why it may be pending for ever, or None


@dataclass
class AttemptRow:
    delivery: int
    generation: int
    attempt: int
    ended: str
    status: object
    recorded: object      # wall; None when the worker vanished
    pid: int              # of the worker


@dataclass
class Circuit:
    """One time that a subscription's circuit was not closed, wall."""

    subscription: int
    opened: float
    closed: object        # None: it never was


@dataclass
class History:
    seed: int
    margin: float         # the dispatchers' lease_margin
    subscriptions: list = field(default_factory=list)
    changes: list = field(default_factory=list)
    orders: list = field(default_factory=list)
    posts: list = field(default_factory=list)
    requests: list = field(default_factory=list)
    workers: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    events: list = field(default_factory=list)
    deliveries: list = field(default_factory=list)
    attempts: list = field(default_factory=list)
    circuits: list = field(default_factory=list)
    lanes_left: int = 0   # lanes without a pending delivery
    settled: bool = True

    def save(self, path):
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1))


MEMBERS = {
    "subscriptions": Subscription, "changes": Change, "orders": Order, "posts": Post,
    "requests": Request, "workers": Worker, "faults": Fault, "events": EventRow,
    "deliveries": DeliveryRow, "attempts": AttemptRow, "circuits": Circuit,
}


def load(path):
    raw = json.loads(path.read_text())
    for name, kind in MEMBERS.items():
        raw[name] = [kind(**member) for member in raw[name]]
    for post in raw["posts"]:
        post.tries = [Try(**one) for one in post.tries]
    return History(**raw)
