"""A dispatcher's side of the database: its session, its statements, its transactions.

How each statement is called stands here and nowhere else in the benches and the
tests of plans.  It follows src/store and src/dispatch/claimer.c.
"""

import random
import re
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATEMENTS = ("lane_reclaim", "turn_wake", "turn_take", "lane_claim", "turn_exclude",
              "turn_rest", "turn_next", "lane_hold", "delivery_record", "delivery_taken",
              "delivery_taken_one", "turn_share", "turn_settle")

RECLAIMS, WAKES, TURNS = 200, 1000, 200 # most in one pass
MARGIN, BEGIN_WITHIN = 5_000_000, 100_000  # microseconds
ACCEPTED = 1_700_000_000_000_000  # an event, in microseconds since 1970


Lease = namedtuple("Lease", "lane token subscription version")


def settings():
    """What src/store/session.c sets."""
    return re.findall(r'\{ "(\w+)", "(\w+)" \}', (ROOT / "src/store/session.c").read_text())


def text(value):
    """A value as PostgreSQL reads it; None is NULL."""
    if isinstance(value, list):
        return "{" + ",".join("NULL" if v is None else str(v) for v in value) + "}"
    return None if value is None else str(value)


class Rota:
    """Who is in the round, and who is next: what src/store/rota.c does."""

    def __init__(self):
        self.tenants = {}  # subscriptions of each; both in the order of their turns

    def add(self, tenant, subscription):
        self.tenants.setdefault(tenant, {}).setdefault(subscription)

    def remove(self, subscription):
        for tenant, members in list(self.tenants.items()):
            if subscription in members:
                del members[subscription]
                if not members:
                    del self.tenants[tenant]

    def next(self, most):
        share = max(most // max(len(self.tenants), 1), 1)
        chosen = []
        for tenant in list(self.tenants)[:most]:
            members = self.tenants.pop(tenant)
            turns = list(members)[:min(share, most - len(chosen))]
            for subscription in turns:
                del members[subscription]
                members[subscription] = None
            self.tenants[tenant] = members
            chosen += turns
        return chosen


class Dispatcher:
    """Runs the statements on a connection, in the transactions of the program."""

    def __init__(self, connection, worker="w"):
        self.connection = connection
        self.worker = worker
        self.look_from = None  # where to look for what is past
        self.entered_from = None  # and for what came into the round
        self.rota = Rota()
        for name, value in settings():
            connection.execute(f"SET {name} = {value}")
        for name in STATEMENTS:
            sql = (ROOT / "sql" / f"{name}.sql").read_text()
            self._done(connection.pgconn.prepare(name.encode(), sql.encode()))

    def _done(self, result):
        if result.error_message:
            raise RuntimeError(result.error_message.decode())
        return result

    def run(self, name, *values):
        """Run one statement; returns its rows, as dicts of text."""
        values = [text(value) for value in values]
        result = self._done(self.connection.pgconn.exec_prepared(
            name.encode(), [value if value is None else value.encode() for value in values]))
        columns = [result.fname(i).decode() for i in range(result.nfields)]
        return [{column: result.get_value(row, i) for i, column in enumerate(columns)}
                for row in range(result.ntuples)]

    @contextmanager
    def transaction(self):
        self._done(self.connection.pgconn.exec_(b"BEGIN"))
        yield
        self._done(self.connection.pgconn.exec_(b"COMMIT"))

    def reclaim(self, sweeps=False):
        self.run("lane_reclaim", self.worker, RECLAIMS, MARGIN,
                 None if sweeps else self.look_from)

    def claim(self, room, sweeps=False):
        """One pass: at most `room` lanes.  Returns the subscriptions whose turn it was."""
        look_from = None if sweeps else self.look_from
        turns = min(room, TURNS)
        with self.transaction():
            self.reclaim(sweeps)
            woken = self.run("turn_wake", WAKES, look_from)
            turns = self.run("turn_take", turns, self.rota.next(turns),
                             None if sweeps else self.entered_from)
            self.run("lane_claim", room, self.worker, MARGIN, BEGIN_WITHIN,
                     random.randrange(1_000_000))
            self.run("turn_next", look_from)
        for row in woken:
            self.look_from = int(row["look_from"])
        for row in turns:
            self.entered_from = int(row["look_from"])
            if row["tenant_id"] is not None:
                self.rota.add(int(row["tenant_id"]), int(row["subscription_id"]))
            elif row["subscription_id"] is not None:
                self.rota.remove(int(row["subscription_id"]))
        return [int(row["subscription_id"]) for row in turns if row["is_taken"] == "t"]

    def rest(self, subscriptions):
        """Put to rest what was claimed for in vain."""
        with self.transaction():
            self.run("turn_exclude", subscriptions)
            self.run("turn_rest", subscriptions)

    def leases(self):
        """What we hold, in order of lanes."""
        return [Lease(*row) for row in self.connection.execute(
            "SELECT l.id, l.lease_token, l.subscription_id, s.version FROM postrider.lane l"
            " JOIN postrider.subscription s ON s.id = l.subscription_id"
            " WHERE l.look_at IS NOT NULL AND l.lease_worker = %s ORDER BY l.id",
            (self.worker,))]

    def kept(self, n):
        """What is kept of n answers without a body, on connections that stood."""
        return (None, None, None, [900] * n, [50] * n, ["content-type: text/plain"] * n, None,
                [ACCEPTED] * n)

    def record(self, leases, verdicts, wait=0, hands_back=True):
        """Keep an outcome for each lease: 'delivered', or 'retry' after `wait`."""
        n = len(leases)
        lanes, tokens, subscriptions, versions = map(list, zip(*leases))
        says = [1 if verdict == "delivered" else -1 for verdict in verdicts]
        with self.transaction():
            self.run("lane_hold", lanes)
            self.run("delivery_record", lanes, tokens, versions, verdicts, [wait] * n,
                     ["answered"] * n, [200] * n, [1000] * n, ["192.0.2.1"] * n, [None] * n,
                     [False] * n, [hands_back] * n, MARGIN, *self.kept(n))
            self.run("turn_share", subscriptions)
            self.run("turn_settle", subscriptions, lanes, says, None, None)

    def taken(self, leases, goes_on=True):
        """Keep for each lease that its delivery was taken; `goes_on`: and all their lanes do."""
        n = len(leases)
        lanes, tokens, subscriptions, versions = map(list, zip(*leases))
        with self.transaction():
            if not goes_on:
                self.run("turn_share", subscriptions)
            self.run("delivery_taken", lanes, tokens, versions, [200] * n, [1000] * n,
                     ["192.0.2.1"] * n, MARGIN, *self.kept(n), True, not goes_on)

    def taken_one(self, lease):
        """The same of one whose lane goes on."""
        kept = [value and value[0] for value in self.kept(1)]
        self.run("delivery_taken_one", lease.lane, lease.token, lease.version, 200, 1000,
                 "192.0.2.1", MARGIN, *kept)
