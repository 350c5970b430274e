"""Order per asset, and no two attempts of a lane at once, whatever happens."""

import json
import random
import signal
import threading

from .statement import accept
from .wait import dawdle, never, until

FAST = {"retry_base_ms": 10, "retry_cap_ms": 20, "timeout_ms": 1000, "max_attempts": 50}


class Judge:
    """An endpoint's behaviour that notes what order forbids."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.first = {}     # asset: numbers, in the order of their first requests
        self.active = {}    # asset: the request being answered
        self.overlaps = []

    def __call__(self, handler, request):
        body = json.loads(request.body)
        asset, n = body["asset"], body["data"]["n"]
        with self.lock:
            if asset in self.active:
                self.overlaps.append((asset, self.active[asset], n))
            self.active[asset] = n
            seen = self.first.setdefault(asset, [])
            if n not in seen:
                seen.append(n)
            dice = self.random.random()
        dawdle(0.002 + 0.01 * dice)
        with self.lock:
            self.active.pop(asset, None)
        if dice < 0.1:
            handler.close_connection = True  # the answer is lost
            return
        handler.send_response(503 if dice < 0.25 else 200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def test_dispatchers_that_die_never_overlap_or_invert_a_lane(
        api, make_dispatch, db, endpoint):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    judge = Judge(seed)
    endpoint.script(judge)
    api.subscribe(endpoint.url, **FAST)
    settings = {"lease_margin": "1s", "poll": "100ms", "batch": 5}
    workers = [make_dispatch(**settings) for _ in range(3)]

    assets, events = 6, 180
    counts = {}
    for _ in range(events):
        asset = f"pump-{chance.randrange(assets)}"
        counts[asset] = counts.get(asset, 0) + 1
        api.event({"n": counts[asset]}, asset=asset)
        if chance.random() < 0.03:
            worker = chance.choice(workers)
            worker.kill(signal.SIGKILL)
            worker.start()

    until(lambda: db.rows("SELECT DISTINCT state FROM postrider.deliveries")
          == [("delivered",)], "all are delivered", seconds=60)
    assert judge.overlaps == []
    assert judge.first == {asset: list(range(1, n + 1)) for asset, n in counts.items()}
    assert db.value("SELECT count(*) FROM postrider.lane") == 0
    kinds = {ended for ended, in db.rows("SELECT DISTINCT ended FROM postrider.attempt")}
    assert "broken" in kinds, "answers were lost"


def race(db, cluster, tenant, subscription):
    """Two transactions for one asset: the second to append is the second to commit."""
    with cluster.connect(db.name) as first, cluster.connect(db.name) as second:
        first.autocommit = second.autocommit = False
        accept(first, tenant, subscription, "first", "a")

        def append():
            accept(second, tenant, subscription, "second", "a")
            second.commit()

        thread = threading.Thread(target=append)
        thread.start()
        until(lambda: db.value(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()") == 1, "the second waits for the first")
        never(lambda: not thread.is_alive(), "the second commits before the first", 0.3)
        first.commit()
        thread.join()


def test_racing_transactions_are_delivered_in_commit_order(
        api, dispatch, db, cluster, endpoint):
    made = api.subscribe(endpoint.url, timeout_ms=60000)
    tenant = db.value("SELECT id FROM postrider.tenant")
    race(db, cluster, tenant, int(made["id"]))
    until(lambda: len(endpoint.requests) == 2, "both arrive")
    assert [r.headers["webhook-id"] for r in endpoint.requests] == ["first", "second"]
    positions = [int(r.headers["postrider-position"]) for r in endpoint.requests]
    assert positions[0] < positions[1]


def test_racing_transactions_keep_their_order_behind_a_head(
        api, dispatch, db, cluster, endpoint):
    """The same with a lane that stands already, its head in flight."""
    waits = threading.Event()

    def wait(handler, _):
        waits.wait(20)
        handler.send_response(200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    endpoint.script(wait, 200)
    made = api.subscribe(endpoint.url, timeout_ms=60000)
    tenant = db.value("SELECT id FROM postrider.tenant")
    api.event({}, id="head", asset="a")
    until(lambda: endpoint.requests, "the head is in flight")
    race(db, cluster, tenant, int(made["id"]))
    waits.set()
    until(lambda: len(endpoint.requests) == 3, "all arrive")
    assert [r.headers["webhook-id"] for r in endpoint.requests] == ["head", "first", "second"]


def test_a_delivery_appended_while_the_head_is_recorded_is_not_forgotten(
        api, dispatch, db, cluster, endpoint):
    """A successor committed while the record waited for the lane's lock is still seen."""
    made = api.subscribe(endpoint.url)
    tenant = db.value("SELECT id FROM postrider.tenant")
    for n in range(20):
        api.event({}, id=f"head-{n}", asset="a")
        until(lambda: not db.rows("SELECT FROM postrider.lane WHERE due_at IS NOT NULL"),
              "the head is leased, or over already")
        with cluster.connect(db.name) as other:
            other.autocommit = False
            accept(other, tenant, int(made["id"]), f"next-{n}", "a")
            until(lambda: f"head-{n}" in
                  [r.headers["webhook-id"] for r in endpoint.requests] or
                  db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type ="
                           " 'Lock' AND datname = current_database()"),
                  "the head is sent, or waits for us")
            other.commit()
        until(lambda: len(endpoint.requests) == 2 * (n + 1), "both arrive")
    until(lambda: db.value("SELECT count(*) FROM postrider.lane") == 0, "all is recorded")
