"""A subscription's queue, driven by hand: accept, claim, record, replay."""

from .statement import (
    accept, accept_all, announce, claim, record, settle, statement, taken, turn_share)


def run(connection, name, *parameters):
    """A statement's rows, as dictionaries."""
    cursor = statement(connection, name, *parameters)
    if cursor.description is None:
        return []
    names = [column.name for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


class Queue:
    """One subscription of one tenant; each call is a transaction of its own."""

    def __init__(self, db, **fields):
        self.db = db
        self.tenant = db.value("INSERT INTO postrider.tenant (name) VALUES ('q' ||"
                               " (SELECT count(*) FROM postrider.tenant)) RETURNING id")
        self.id = self.subscribe(**fields)

    def subscribe(self, **fields):
        """One more subscription of the tenant."""
        fields = {"tenant_id": self.tenant, "url": "https://example.com/", **fields}
        made = self.db.value(
            f"INSERT INTO postrider.subscription ({', '.join(fields)}) VALUES"
            f" ({', '.join(['%s'] * len(fields))}) RETURNING id", list(fields.values()))
        self.db.execute("INSERT INTO postrider.turn (subscription_id, tenant_id)"
                        " VALUES (%s, %s)", (made, self.tenant))
        return made

    def transaction(self, work):
        with self.db.connection.transaction():
            self.db.execute("SET LOCAL lock_timeout = '10s'")
            return work(self.db.connection)

    def accept(self, event, asset="a"):
        """One event; returns its delivery."""
        self.transaction(lambda c: accept(c, self.tenant, self.id, event, asset))
        return self.delivery(event)

    def accept_unordered(self, event, asset=None):
        def work(connection):
            accept_all(connection, self.tenant, [event], self.id, [asset], ordered=False)
            announce(connection)
        self.transaction(work)
        return self.delivery(event)

    def accept_for_nobody(self, event, asset="a", type="t", named=None):
        """As while the subscription is disabled; returns the event's number."""
        self.transaction(lambda c: accept_all(
            c, self.tenant, [event], assets=[asset], type=type, named=named))
        return self.db.value("SELECT event_no FROM postrider.event WHERE event_id = %s",
                             (event,))

    def delivery(self, event):
        return self.db.value(
            "SELECT d.id FROM postrider.delivery d JOIN postrider.event e USING (event_no)"
            " WHERE e.event_id = %s AND d.subscription_id = %s", (event, self.id))

    def claim(self):
        """Lease all that is due; returns [(lane, token, event)]."""
        leases = self.transaction(claim)
        return [(lane, leases[lane], event) for lane, event in self.db.rows(
            "SELECT l.id, e.event_id FROM postrider.lane l JOIN postrider.event e"
            " ON e.event_no = l.head_event_no WHERE l.id = ANY (%s) ORDER BY l.head_id",
            (list(leases),))]

    def record(self, lease, verdict="delivered", wait_us=0, **says):
        """One outcome; what it says of the endpoint is as settle() takes it."""
        def work(connection):
            lane, token, _ = lease
            # Never handed back: each head is claimed, so each is seen.
            record(connection, lane, token, verdict, wait_us, hands_back=False)
            settle(connection, self.id, lane, **says)
        self.transaction(work)

    def take(self, lease):
        """Record the short way that it was delivered, if there is one; returns whether."""
        def work(connection):
            lane, token, _ = lease
            turn_share(connection, self.id)
            return lane in taken(connection, [lane], [token], hands_back=False, shared=True)
        return self.transaction(work)

    def die(self, *events):
        """Accept events one after the other, each to die; returns their deliveries."""
        made = []
        for event in events:
            made.append(self.accept(event))
            self.send("dead")
        return made

    def send(self, verdict="delivered", wait_us=0):
        """One attempt at all that is due now; returns the events in order."""
        leases = self.claim()
        for lease in leases:
            self.record(lease, verdict, wait_us)
        return [event for _, _, event in leases]

    def drain(self):
        """Deliver all that is due, and what follows; returns the events in order."""
        sent = []
        while True:
            now = self.send()
            if not now:
                return sent
            sent += now

    def fall_due(self):
        """What waits for its retry has waited long enough."""
        self.db.execute("UPDATE postrider.lane SET due_at = now() WHERE due_at > now()")

    def begin_retry(self, connection, delivery):
        """A retry up to its commit; returns its answer."""
        statement(connection, "replay_one", None, self.id, delivery)
        statement(connection, "replay_hold")
        statement(connection, "replay_place")
        announce(connection)
        rows = run(connection, "replay_answer", None, self.id, delivery, "delivery.retried",
                   "test")
        return rows[0] if rows else None

    def retry(self, delivery):
        return self.transaction(lambda c: self.begin_retry(c, delivery))

    def begin_discard(self, connection, delivery):
        statement(connection, "discard_hold", None, self.id, delivery)
        statement(connection, "delivery_discard", None, self.id, delivery)
        announce(connection)
        rows = run(connection, "replay_answer", None, self.id, delivery,
                   "delivery.discarded", "test")
        return rows[0] if rows else None

    def discard(self, delivery):
        return self.transaction(lambda c: self.begin_discard(c, delivery))

    def start(self, what, since=None, until=None, rate=None):
        """A replay in the background; returns its id."""
        return self.transaction(lambda c: run(
            c, "replay_start", None, self.id, what, since, until, rate, "test"))[0]["id"]

    def begin_step(self, connection):
        statement(connection, "replay_pick")
        for name in ("look", "hold", "place"):
            statement(connection, f"replay_{name}")
        announce(connection)
        return run(connection, "replay_next")[0]

    def step(self):
        """The next step; returns how many it came to, and when the next is due."""
        return self.transaction(self.begin_step)

    def job(self, job):
        return self.transaction(
            lambda c: run(c, "replay_get", None, self.id, job))[0]

    # -- how it stands --

    def state(self, delivery):
        """State, generation and attempts of a delivery."""
        return self.db.rows("SELECT state, generation, attempts FROM postrider.delivery"
                            " WHERE id = %s", (delivery,))[0]

    def lane(self, asset="a"):
        """Head, where it resumes, attempts; how it is: due, waits, held, leased."""
        rows = self.db.rows(
            "SELECT head_id, resume_id, attempts, CASE WHEN lease_token IS NOT NULL THEN"
            " 'leased' WHEN due_at IS NULL THEN 'held' WHEN due_at > now() THEN 'waits'"
            " ELSE 'due' END FROM postrider.lane WHERE subscription_id = %s AND asset = %s",
            (self.id, asset))
        return rows[0] if rows else None

    def waiting(self):
        """The replays that wait for their lane."""
        return [row for row, in self.db.rows(
            "SELECT delivery_id FROM postrider.replay ORDER BY delivery_id")]

    def check(self):
        """What must hold after each transaction, whatever happened."""
        for sentence, query in INVARIANTS.items():
            assert self.db.rows(query) == [], sentence


INVARIANTS = {
    "an attempt is kept in one place":
        "SELECT delivery_id FROM postrider.attempt GROUP BY delivery_id, generation, attempt"
        " HAVING count(*) > 1",
    "what was delivered has its last attempt on record":
        "SELECT d.id FROM postrider.delivery d WHERE d.state = 'delivered'"
        " AND d.attempts > 0 AND NOT EXISTS (SELECT FROM postrider.attempt a"
        " WHERE a.delivery_id = d.id AND a.generation = d.generation AND a.attempt = d.attempts)",
    "a delivery keeps no attempt while it is pending":
        "SELECT id FROM postrider.delivery WHERE state = 'pending'"
        " AND num_nonnulls(duration_us, worker, remote) > 0",
    "a dead delivery has its dead letter, and nothing else has":
        "SELECT d.id, d.state FROM postrider.delivery d FULL JOIN postrider.dead_letter x"
        " ON x.delivery_id = d.id WHERE (d.state = 'dead') <> (x.delivery_id IS NOT NULL)",
    "what is pending is in a lane that stands":
        "SELECT d.id FROM postrider.delivery d LEFT JOIN postrider.lane l"
        " ON l.id = coalesce(d.lane_id, d.id) WHERE d.state = 'pending' AND l.id IS NULL",
    "what is pending is the head, waits as a replay, or is yet to come":
        "SELECT d.id FROM postrider.delivery d JOIN postrider.lane l"
        " ON l.id = coalesce(d.lane_id, d.id) WHERE d.state = 'pending'"
        " AND (d.id = l.head_id)::int"
        " + (d.id <> l.head_id AND d.id >= coalesce(l.resume_id, l.head_id + 1)"
        "    AND d.id <= l.tail_id)::int"
        " + (SELECT count(*) FROM postrider.replay r WHERE r.lane_id = l.id"
        "    AND r.delivery_id = d.id) <> 1",
    "a replay that waits is pending, in a lane that stands":
        "SELECT r.* FROM postrider.replay r LEFT JOIN postrider.lane l ON l.id = r.lane_id"
        " LEFT JOIN postrider.delivery d ON d.id = r.delivery_id AND d.state = 'pending'"
        " WHERE l.id IS NULL OR d.lane_id IS DISTINCT FROM l.id",
    "a head is pending, unless it holds its lane":
        "SELECT l.id FROM postrider.lane l LEFT JOIN postrider.delivery d ON d.id = l.head_id"
        " WHERE d.event_no IS DISTINCT FROM l.head_event_no OR d.state IS DISTINCT FROM"
        " CASE WHEN l.due_at IS NULL AND l.lease_token IS NULL THEN 'dead'"
        " ELSE 'pending' END",
    "no lane waits for a head behind a replay":
        "SELECT l.id FROM postrider.lane l JOIN postrider.replay r ON r.lane_id = l.id"
        " WHERE l.due_at IS NOT NULL AND r.delivery_id < l.head_id",
}
