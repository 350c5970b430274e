"""The history counts each attempt once, a moment later, and costs few look-ups."""

import json
import os

import pytest
from bench.dispatcher import ROOT, settings

from .api import Api
from .replaying import run
from .statement import taken
from .test_queue import in_thread, waiting
from .wait import until

FAST = {"retry_base_ms": 10}
MANY = int(os.environ.get("POSTRIDER_TEST_ROWS", "50000"))
HOUR, DAY = 3_600_000_000, 86_400_000_000  # microseconds
ROWS = 300  # attempts in a step, as in src/store/chore.c
STEP = ("history_step", ROWS, 2 * HOUR, 3 * DAY, 1_000_000)


def step(connection, *how):
    [row] = run(connection, *(how or STEP))
    return row["did"], row["next_in_us"]


def count_all(db):
    """Steps until nothing is left."""
    while db.value("SELECT EXISTS (SELECT FROM postrider.attempt, postrider.history_progress"
                   " WHERE recorded_at >= counted_until)"):
        step(db.connection)


def counts(db, subscription=0, seconds=900):
    """(delivered, failed, dead) of all there is."""
    [row] = db.rows("SELECT sum(delivered), sum(failed), sum(dead) FROM postrider.history"
                    " WHERE subscription_id = %s AND seconds = %s"
                    " AND (subscription_id > 0 OR tenant_id = 0)", (subscription, seconds))
    return row


def history(api, **asked):
    query = "&".join(f"{name}={value}" for name, value in asked.items())
    return api.get(f"/v1/state/history?{query}").expect(200)


def total(answer):
    return tuple(sum(bucket[name] for bucket in answer["buckets"])
                 for name in ("delivered", "failed", "dead"))


# -- with the real programs --

def test_what_was_tried_is_in_the_history_a_moment_later(
        api, cli, ingest, dispatch, db, endpoint, make_endpoint):
    endpoint.script(500, 200, 404, 200)
    other = make_endpoint()
    made = api.subscribe(endpoint.url, **FAST)
    second = api.subscribe(other.url)
    for n in range(3):
        api.event({"n": n}, asset="a")
    until(lambda: total(history(api, span="hour")) == (5, 2, 1), "all are counted", seconds=20)
    assert total(history(api, span="hour", subscription=made["id"])) == (2, 2, 1)
    assert total(history(api, span="day", subscription=second["id"])) == (3, 0, 0)
    answer = history(api, span="day")
    assert (answer["bucket_seconds"], answer["tenant"], answer["subscription_id"]) == (
        900, "acme", None)
    assert len(answer["buckets"]) == 96 and answer["buckets"][0]["at"] == answer["from"]
    last = next(b for b in reversed(answer["buckets"]) if b["delivered"])
    assert 0 < last["attempt_ms"]["p50"] <= last["attempt_ms"]["p95"] <= last["attempt_ms"]["p99"]
    assert last["delivery_ms"]["p50"] > 0
    empty = history(api, span="hour")["buckets"][0]
    assert (empty["delivered"], empty["success"], empty["attempt_ms"]) == (0, None, None)
    # Psql says the same.
    shown = db.rows("SELECT delivered, failed, dead, success::float, attempt_p50, delivery_p99"
                    " FROM postrider.history WHERE seconds = 900 AND tenant = 'acme'"
                    " AND subscription_id = 0 ORDER BY at DESC LIMIT 1")
    assert shown == [(last["delivered"], last["failed"], last["dead"], last["success"],
                      last["attempt_ms"]["p50"], last["delivery_ms"]["p99"])]
    # An operator sees all tenants, or one.
    operator = ingest.api(cli.json("key", "create", "--role", "operator")["key"])
    assert total(history(operator, span="hour")) == (5, 2, 1)
    assert history(operator, span="hour")["tenant"] is None
    assert total(history(operator, span="hour", tenant="acme")) == (5, 2, 1)
    cli("tenant", "create", "idle")
    assert total(history(operator, span="hour", tenant="idle")) == (0, 0, 0)
    operator.get("/v1/state/history?span=hour&tenant=nobody").expect(404)


def test_several_dispatchers_count_each_attempt_once(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url)
    for _ in range(3):
        make_dispatch()
    lines = b"".join(json.dumps({"type": "t", "asset": f"a{n % 40}", "data": n}).encode() + b"\n"
                     for n in range(400))
    for _ in range(4):
        api.post("/v1/events/batch", lines,
                 headers={"Content-Type": "application/x-ndjson"}).expect(202)
    until(lambda: counts(db) == (1600, 0, 0), "all are counted", seconds=60)
    for seconds in 60, 900:
        for whose in ("subscription_id > 0", "subscription_id = 0 AND tenant_id > 0",
                      "tenant_id = 0"):
            assert db.value(f"SELECT sum(delivered) FROM postrider.history WHERE {whose}"
                            f" AND seconds = {seconds}") == 1600


def test_a_history_that_cannot_be_written_holds_up_nothing_else(api, dispatch, db, endpoint):
    made, other = api.subscribe(endpoint.url), api.subscribe(endpoint.url)
    db.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
               " $$ BEGIN RAISE 'it may not be'; END $$")
    db.execute("CREATE TRIGGER refuse BEFORE INSERT ON postrider.history_count"
               " EXECUTE FUNCTION refuse()")
    api.post(f"/v1/subscriptions/{other['id']}/pause").expect(200)
    api.event(1)
    until(lambda: "it may not be" in dispatch.log(), "it was refused")
    assert api.post(f"/v1/subscriptions/{made['id']}/test").expect(200)["status"] == 200
    api.delete(f"/v1/subscriptions/{other['id']}").expect(204)
    until(lambda: db.value("SELECT count(*) FROM postrider.lane") == 0, "the other is cancelled")
    api.event(2)
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") == 2, "both are delivered")
    assert counts(db) == (None, None, None)
    db.execute("DROP TRIGGER refuse ON postrider.history_count")
    until(lambda: counts(db) == (2, 0, 0), "both are counted", seconds=20)


def test_what_is_asked_wrongly_is_refused(api, db, endpoint):
    made = api.subscribe(endpoint.url)
    for query in ("", "span=week", "span=hour&span=day", "span=hour&tenant=acme",
                  "span=hour&subscription=x", "span=hour&more=1"):
        api.get(f"/v1/state/history?{query}").expect(400)
    api.get("/v1/state/history?span=hour&subscription=12345").expect(404)
    api.delete(f"/v1/subscriptions/{made['id']}")
    api.get(f"/v1/state/history?span=hour&subscription={made['id']}").expect(404)


def test_a_strangers_subscription_is_as_one_that_does_not_exist(api, cli, ingest, endpoint):
    made = api.subscribe(endpoint.url)
    cli("tenant", "create", "globex")
    stranger = Api(ingest.port, cli.json("key", "create", "--tenant", "globex", "--role",
                                         "viewer")["key"])
    found = stranger.get(f"/v1/state/history?span=day&subscription={made['id']}")
    missing = stranger.get("/v1/state/history?span=day&subscription=987654")
    assert (found.status, found.body) == (missing.status, missing.body) == (404, found.body)


# -- step by step --

def test_a_record_that_is_still_open_is_waited_for_and_counted_once(queue, db, other):
    """Also if one that began later ends before."""
    for asset in "ab":
        queue.accept(f"e-{asset}", asset)
    slow, quick = queue.claim()
    run(other, "lane_hold", [slow[0]])
    other.execute(RECORD, (slow[0], slow[1]))
    queue.record(quick)
    for _ in range(3):
        step(db.connection)
    assert counts(db) == (None, None, None)
    other.commit()
    count_all(db)
    assert counts(db) == (2, 0, 0)
    assert counts(db, queue.id, 60) == (2, 0, 0)


RECORD = """
    INSERT INTO postrider.attempt (delivery_id, generation, attempt, duration_us, ended, status,
                                   worker)
    SELECT head_id, 1, 1, 1000, 'answered', 200, 'w' FROM postrider.lane
     WHERE id = %s AND lease_token = %s"""


def test_a_time_is_not_older_than_the_number_of_its_transaction(queue, db, other, cluster):
    """What one statement records is asked for the time when it has its lock, and a number."""
    for n in range(2):
        queue.accept(f"e{n}", "slow")
    queue.accept("e2", "quick")
    slow, quick = queue.claim()
    queue.record(quick)
    other.execute("SELECT FROM postrider.lane WHERE id = %s FOR UPDATE", (slow[0],))
    with cluster.connect(db.name) as late, late.transaction():
        join = in_thread(lambda: taken(late, [slow[0]], [slow[1]]))
        until(lambda: waiting(db), "it waits for its lane")
        step(db.connection)  # looks at the clock
        other.commit()
        join()
        until(lambda: step(db.connection) and counts(db) == (1, 0, 0), "the other is counted")
    count_all(db)
    assert counts(db) == (2, 0, 0)


def test_one_counts_at_a_time(queue, db, other):
    queue.accept("e")
    queue.send()
    step(db.connection)
    until(lambda: db.value("SELECT watched_xid < pg_snapshot_xmin(pg_current_snapshot())"
                           " FROM postrider.history_progress"), "it can be counted")
    assert step(other)[0] == 1
    assert step(db.connection) == (0, None)
    other.commit()
    count_all(db)
    assert counts(db) == (1, 0, 0)


def test_a_dead_letter_is_counted_though_it_was_retried_or_discarded_since(queue, db):
    first, second, _ = queue.die("e1", "e2", "e3")
    queue.retry(first)
    queue.discard(second)
    db.execute("UPDATE postrider.attempt SET status = 404")
    count_all(db)
    assert counts(db) == (0, 3, 3)
    queue.send()
    count_all(db)
    assert counts(db) == (1, 3, 3)


def test_a_retry_is_a_failure_and_no_death(queue, db):
    queue.accept("e")
    for verdict in "retry", "retry", "delivered":
        queue.send(verdict)
    db.execute("UPDATE postrider.attempt SET status = 500 WHERE attempt < 3")
    count_all(db)
    assert counts(db) == (1, 2, 0)


def test_a_replay_has_no_time_from_acceptance(queue, db):
    [dead] = queue.die("e1")
    db.execute("UPDATE postrider.attempt SET status = 404")
    queue.retry(dead)
    queue.send()
    count_all(db)
    assert db.rows("SELECT attempt_p50 IS NULL, delivery_p50 FROM postrider.history") == [
        (False, None)] * 6


def test_a_step_takes_no_more_than_its_share_and_records_whole(queue, db):
    deliver(db, queue, 1000)
    done = []
    while counts(db) != (1000, 0, 0):
        done.append(step(db.connection, "history_step", 295, 2 * HOUR, 3 * DAY, 1))
    assert [each for each in done if each[0] > 0] == [(300, 0)] * 3 + [(100, 1)]


def deliver(db, queue, n, ago="interval '0'"):
    """n deliveries that were recorded ten at a time, a millisecond apart."""
    first = db.value("SELECT nextval('postrider.position')")
    db.execute(f"""
        WITH fresh AS (
            SELECT {first} + 1000 * g AS no, g FROM generate_series(1, {n}) g
        ), accepted AS (
            INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type, asset,
                                         fingerprint, accepted_at)
            SELECT no, {queue.tenant}, 1, no::text, 't', 'a', '\\x00', now() - {ago}
              FROM fresh
        ), made AS (
            INSERT INTO postrider.delivery (id, event_no, subscription_id, state, attempts,
                                            status, finished_at)
            SELECT no + 1, no, {queue.id}, 'delivered', 1, 200, now() - {ago} FROM fresh
        )
        INSERT INTO postrider.attempt (delivery_id, generation, attempt, duration_us, ended,
                                       status, worker, recorded_at)
        SELECT no + 1, 1, 1, 1000 * g, 'answered', 200, 'w',
               now() - {ago} - ({n} - g) / 10 * interval '1 ms' FROM fresh""")
    db.value(f"SELECT setval('postrider.position', {first} + 1000 * {n + 1})")


def test_percentiles_are_true_within_a_fifth(queue, db):
    deliver(db, queue, 1000)  # 1 ms to 1 s
    count_all(db)
    histograms = db.value("SELECT array_agg(attempt_times) FROM postrider.history_count"
                          " WHERE seconds = 900 AND subscription_id = 0 AND tenant_id = 0")
    summed = [sum(column) for column in zip(*histograms)] if len(histograms) > 1 else histograms[0]
    for part, true in ((0.5, 500), (0.95, 950), (0.99, 990)):
        found = db.value("SELECT postrider.histogram_ms(%s::integer[], %s)", (summed, part))
        assert abs(found / true - 1) < 0.2, (part, found)


def test_each_time_has_its_bin(db):
    for us, bin in ((None, None), (-5, 1), (0, 1), (99.9, 1), (100, 2), (141, 2), (142, 3), (200, 4),
                    (10 ** 12, 64), (10 ** 18, 64)):
        assert db.value("SELECT postrider.histogram_bin(%s::float8)", (us,)) == bin, us


def test_what_is_old_goes(queue, db):
    db.execute("INSERT INTO postrider.history_count SELECT 7, s, date_trunc('hour', now())"
               " - n * interval '1 hour', 1, 1, 0, 0, '{}', '{}' FROM generate_series(0, 99) n,"
               " (VALUES (60), (900)) v (s)")
    deliver(db, queue, 10)
    count_all(db)
    for _ in range(3):  # a day after something was last recorded it still knows what is old
        step(db.connection, "history_step", 60, 2 * HOUR, 3 * DAY, 1)
    left = db.rows("SELECT seconds, count(*) FROM postrider.history_count WHERE subscription_id"
                   " = 7 GROUP BY seconds ORDER BY seconds")
    assert left[0][1] in (2, 3) and left[1][1] in (72, 73), left


# -- what it costs --

class Explainer:
    """Runs statements under EXPLAIN, as the programs plan them, and undoes them."""

    def __init__(self, connection):
        self.connection = connection
        for name, value in settings():
            connection.execute(f"SET {name} = {value}")
        for name in ("history_step", "history_list", "state_recent"):
            connection.execute(
                f"PREPARE {name} AS {(ROOT / 'sql' / f'{name}.sql').read_text()}")
        self.measure(1)  # planned now, whatever comes

    def call(self, name, *literals):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}"
            f" ({', '.join(map(str, literals))})").fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def measure(self, tenant):
        self.connection.execute("BEGIN")
        pages = {"step": self.call("history_step", 100, 2 * HOUR, 3 * DAY, 1),
                 "hour": self.call("history_list", tenant, "NULL", "NULL", 60, 60),
                 "day": self.call("history_list", "NULL", "NULL", "NULL", 900, 96),
                 "recent": self.call("state_recent", tenant, "NULL")}
        self.connection.execute("ROLLBACK")
        return pages


def costs(cluster, template, n):
    """{(when, what): pages} of a hundred attempts beside n."""
    from .replaying import Queue
    db = cluster.create(template)
    try:
        early = Explainer(cluster.connect(db.name))
        queue = Queue(db)
        deliver(db, queue, n, "interval '1 day'")
        db.execute(f"INSERT INTO postrider.history_count SELECT g / 200 + 100, 60,"
                   f" date_trunc('minute', now()) - g % 100 * interval '1 minute',"
                   f" g / 2000 + 100, 1, 0, 0, '{{1}}', '{{1}}'"
                   f" FROM generate_series(1, {n}) g ON CONFLICT DO NOTHING")
        db.execute("UPDATE postrider.history_progress SET counted_until = now() - interval"
                   " '1 hour', watched_at = now() + interval '1 hour', watched_xid = '3'")
        deliver(db, queue, 100)
        late = Explainer(cluster.connect(db.name))
        found = {("empty", *key): pages for key, pages in
                 ((tuple([k]), v) for k, v in early.measure(queue.tenant).items())}
        found |= {("loaded", k): v for k, v in late.measure(queue.tenant).items()}
        db.execute("ANALYZE")
        last = Explainer(cluster.connect(db.name))
        found |= {("analyzed", k): v for k, v in last.measure(queue.tenant).items()}
        for one in early, late, last:
            one.connection.close()
        return found
    finally:
        db.drop()


def test_what_it_reads_does_not_grow(cluster, template):
    small, big = costs(cluster, template, 1000), costs(cluster, template, MANY)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small if big[key] > 1.5 * small[key] + 100}
    assert grown == {}
