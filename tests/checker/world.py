"""The processes of one round, and what the database says in the end."""

import secrets

import psycopg

from integration.api import Api
from integration.daemons import Cli, Dispatch, Ingest
from integration.wait import until

from .history import AttemptRow, Circuit, DeliveryRow, EventRow, Subscription, Worker

# The database tells when a transaction was committed: the order that lanes must
# keep, from a clock that is not Postrider's.
CLUSTER = {"track_commit_timestamp": "on"}

MARGIN = 1.0
DISPATCH = {"lease_margin": "1s", "poll": "200ms", "statement_timeout": "5s",
            "log_level": "info"}
INGEST = {"statement_timeout": "5s", "log_level": "info"}

# How long one call may take before the caller asks again, elsewhere.
PATIENCE = 2.5


class Seat:
    """One place for a program, which dies and comes back in it."""

    def __init__(self, program):
        self.program = program
        self.is_frozen = False
        self.port = None
        self.worker = None

    @property
    def is_up(self):
        return self.program.is_running() and not self.is_frozen


class World:
    def __init__(self, cluster, template, folder):
        self.cluster = cluster
        self.db = cluster.create(template)
        self.db.close()
        key = folder / "secret.key"
        key.write_text(secrets.token_hex(32) + "\n")
        key.chmod(0o600)
        self.settings = {"database": self.db.conninfo, "secret_key_file": key}
        self.folder = folder
        self.cli = Cli(self.settings)
        self.ingests, self.dispatchers = [], []
        self.workers = []
        self.living = {}  # the dispatchers that there are: {number: pid}
        self.keys = {}

    # -- processes --

    def begin(self, ingests, dispatchers):
        for _ in range(ingests):
            seat = Seat(Ingest(self.folder, {**self.settings, **INGEST}))
            self.ingests.append(seat)
            self.start(seat)
        for _ in range(dispatchers):
            seat = Seat(Dispatch(self.folder, {**self.settings, **DISPATCH}))
            self.dispatchers.append(seat)
            self.start(seat)

    def start(self, seat):
        if seat in self.ingests:
            seat.port = seat.program.start().port
            return
        # A dispatcher is known before it can send.
        seat.program.launch()
        seat.worker = Worker(len(self.workers), seat.program.pid)
        self.workers.append(seat.worker)
        self.living = {**self.living, seat.worker.number: seat.worker.pid}

    def _forget(self, seat):
        if seat.worker is not None:
            self.living = {n: pid for n, pid in self.living.items()
                           if n != seat.worker.number}

    def stop(self, seat):
        """The orderly way: it must end well, once it is there at all."""
        seat.program.wait_ready().stop()
        self._forget(seat)

    def kill(self, seat):
        seat.program.kill()
        self._forget(seat)

    def end(self):
        """All stop."""
        for seat in self.ingests + self.dispatchers:
            self.stop(seat)

    def close(self):
        """Whatever still runs is killed; the database goes."""
        for seat in self.ingests + self.dispatchers:
            if seat.program.is_running():
                self.kill(seat)
        with self.cluster.connect() as connection:
            connection.execute(f"DROP DATABASE {self.db.name} WITH (FORCE)")

    def logs(self):
        return "\n".join(f"-- {path.name}\n{path.read_text(errors='replace')}"
                         for path in sorted(self.folder.glob("*.log")))

    # -- tenants and subscriptions, before anything goes wrong --

    def api(self, tenant, index=0):
        return Api(self.ingests[index].port, self.keys[tenant], seconds=PATIENCE)

    def make_tenant(self, name):
        self.cli.json("tenant", "create", name)
        self.keys[name] = self.cli.json(
            "key", "create", "--tenant", name, "--role", "admin")["key"]

    def subscribe(self, number, tenant, url, fields):
        made = self.api(tenant).subscribe(url, **fields)
        return Subscription(number, int(made["id"]), tenant, made["secret"],
                            fields["event_types"], fields["ordering"])

    # -- the database --

    def rows(self, statement):
        with self.cluster.connect(self.db.name) as connection:
            return connection.execute(statement).fetchall()

    def look(self, statement):
        """The same while the server may be away: it comes back."""
        def rows():
            try:
                return (self.rows(statement),)
            except psycopg.OperationalError:
                return None
        return until(rows, "PostgreSQL answers", 60)[0]

    def settle(self, seconds):
        """Wait until nothing is pending without a reason; False if that never comes."""
        try:
            until(lambda: self.rows(UNFINISHED)[0][0] == 0, "all is done", seconds)
        except AssertionError:
            return False
        return True

    def record(self, history):
        """Copy the database's record into the history."""
        history.workers = self.workers
        history.events = [
            EventRow(*row[:6], row[6] and row[6].decode("latin-1"), row[7])
            for row in self.rows(EVENTS)]
        history.deliveries = [DeliveryRow(*row) for row in self.rows(DELIVERIES)]
        history.attempts = [
            AttemptRow(*row[:-1], pid=int(row[-1].rsplit(":", 2)[1]))
            for row in self.rows(ATTEMPTS)]
        numbers = {s.id: s.number for s in history.subscriptions}
        history.circuits = [Circuit(numbers[id], opened, closed)
                            for id, opened, closed in self.rows(CIRCUITS)]
        history.lanes_left = self.rows(LANES_LEFT)[0][0]


DELIVERIES = """
SELECT d.id, d.event_no, d.subscription_id, d.state, d.generation, d.attempts,
       CASE
           WHEN d.state <> 'pending'  THEN NULL
           WHEN s.state IN ('paused', 'disabled')
                                      THEN s.state
           WHEN h.state = 'dead' AND l.due_at IS NULL AND l.lease_token IS NULL
                                      THEN 'held'
       END AS waits
  FROM postrider.delivery d
  JOIN postrider.subscription s ON s.id = d.subscription_id
  LEFT JOIN postrider.lane l ON l.id = coalesce(d.lane_id, d.id)
  LEFT JOIN postrider.delivery h ON h.id = l.head_id
 ORDER BY d.id
"""

UNFINISHED = f"""
SELECT (SELECT count(*) FROM ({DELIVERIES}) AS d
         WHERE state = 'pending' AND waits IS NULL)
       + (SELECT count(*) FROM postrider.replay_job WHERE state = 'running')
"""

EVENTS = """
SELECT t.name, e.event_id, e.event_no, e.type, e.asset, e.fan_out,
       e.body,
       extract(epoch FROM pg_xact_commit_timestamp(e.xmin))::float8
  FROM postrider.event e
  JOIN postrider.tenant t ON t.id = e.tenant_id
 ORDER BY e.event_no
"""

ATTEMPTS = """
SELECT delivery_id, generation, attempt, ended, status,
       extract(epoch FROM started_at + duration_us * interval '1 microsecond')::float8,
       worker
  FROM postrider.attempt
 ORDER BY delivery_id, generation, attempt
"""

CIRCUITS = """
SELECT subject::bigint,
       extract(epoch FROM at)::float8,
       (SELECT extract(epoch FROM min(c.at))::float8
          FROM postrider.audit c
         WHERE c.subject = o.subject
           AND c.action = 'subscription.circuit_closed'
           AND c.at > o.at)
  FROM postrider.audit o
 WHERE action = 'subscription.circuit_opened'
"""

LANES_LEFT = """
SELECT count(*)
  FROM postrider.lane l
  LEFT JOIN postrider.delivery d ON d.id = l.head_id
 WHERE d.state IS DISTINCT FROM 'pending'
   AND (d.state IS DISTINCT FROM 'dead' OR l.due_at IS NOT NULL
        OR l.lease_token IS NOT NULL)
"""
