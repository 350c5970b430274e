"""The history counts each attempt once, a moment later, and costs few look-ups."""

import json
import os
from collections import Counter

import pytest
from bench.dispatcher import ROOT, settings

from .api import Api
from .replaying import run
from .statement import record, record_all, taken
from .test_queue import in_thread, waiting
from .wait import until

FAST = {"retry_base_ms": 10}
MANY = int(os.environ.get("POSTRIDER_TEST_ROWS", "50000"))
HOUR, DAY = 3_600_000_000, 86_400_000_000  # microseconds
ATTEMPTS, ROWS = 300, 300  # of a step, as in src/store/chore.c


def counting(attempts=ATTEMPTS, rows=ROWS, next_in=1_000_000):
    return "history_step", attempts, rows, 2 * HOUR, 3 * DAY, next_in


def step(connection, *how):
    [row] = run(connection, *(how or counting()))
    return row["did"], row["next_in_us"]


def count_all(db):
    """Steps until nothing is left."""
    while db.value("SELECT EXISTS (SELECT FROM postrider.history_tally)"):
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
    assert db.value("SELECT tried FROM postrider.history_progress") == 7
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
    record(other, slow[0], slow[1], "delivered")
    queue.record(quick)
    for _ in range(3):
        step(db.connection)
    assert counts(db) == (None, None, None)
    other.commit()
    count_all(db)
    assert counts(db) == (2, 0, 0)
    assert counts(db, queue.id, 60) == (2, 0, 0)


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
        assert late.execute("SELECT max(recorded_at) >= (SELECT watched_at FROM postrider."
                            "history_progress) FROM postrider.history_tally").fetchone()[0]
        until(lambda: step(db.connection) and counts(db) == (1, 0, 0), "the other is counted")
    count_all(db)
    assert counts(db) == (2, 0, 0)


def until_it_can_be_counted(db):
    step(db.connection)
    until(lambda: db.value("SELECT watched_xid < pg_snapshot_xmin(pg_current_snapshot())"
                           " FROM postrider.history_progress"), "it can be counted")


def test_one_counts_at_a_time(queue, db, other):
    queue.accept("e")
    queue.send()
    until_it_can_be_counted(db)
    assert step(other)[0] == 1
    assert step(db.connection) == (0, None)
    other.commit()
    count_all(db)
    assert counts(db) == (1, 0, 0)


def test_a_dead_letter_is_counted_though_it_was_retried_or_discarded_since(queue, db):
    first, second, _ = queue.die("e1", "e2", "e3")
    queue.retry(first)
    queue.discard(second)
    count_all(db)
    assert counts(db) == (0, 3, 3)
    queue.send()
    count_all(db)
    assert counts(db) == (1, 3, 3)


def test_a_retry_is_a_failure_and_no_death(queue, db):
    queue.accept("e")
    for verdict in "retry", "retry", "delivered":
        queue.send(verdict)
    count_all(db)
    assert counts(db) == (1, 2, 0)


def test_a_replay_has_no_time_from_acceptance(queue, db):
    [dead] = queue.die("e1")
    queue.retry(dead)
    queue.send()
    count_all(db)
    assert db.rows("SELECT attempt_p50 IS NULL, delivery_p50 FROM postrider.history") == [
        (False, None)] * 6
    queue.accept("e2")
    queue.send()
    count_all(db)
    assert sum(history_of(db, queue.id)[4].values()) == 1


def test_where_nobody_knows_when_it_was_accepted_it_has_no_such_time(queue, db):
    queue.accept("e")
    [lease] = queue.claim()
    queue.transaction(lambda c: record(c, *lease[:2], "delivered", accepted_us=[None]))
    count_all(db)
    assert counts(db) == (1, 0, 0)
    assert history_of(db, queue.id)[4] == {}


def test_a_tally_is_gone_once_it_is_counted(queue, db, other):
    """By the same transaction."""
    queue.accept("e")
    queue.send()
    until_it_can_be_counted(db)
    assert step(other)[0] == 1
    assert counts(db) == (None, None, None)
    other.rollback()
    assert db.value("SELECT count(*) FROM postrider.history_tally") == 1
    count_all(db)
    assert counts(db) == (1, 0, 0)
    assert db.value("SELECT count(*) FROM postrider.history_tally") == 0


def test_what_is_recorded_after_the_clock_was_set_back_is_counted_too(queue, db):
    db.execute("UPDATE postrider.history_progress SET counted_until = now() + interval '1 hour',"
               " watched_at = now() + interval '1 hour'")
    for n in range(3):
        queue.accept(f"e{n}")
        queue.send()
        count_all(db)
    assert counts(db) == (3, 0, 0)
    assert db.value("SELECT watched_at <= now() FROM postrider.history_progress")


def history_of(db, subscription):
    """What was counted of it: delivered, failed, dead and two histograms, {bin: number}."""
    rows = db.rows("SELECT delivered, failed, dead, attempt_times, delivery_times"
                   " FROM postrider.history_count WHERE seconds = 900 AND subscription_id = %s",
                   (subscription,))
    assert rows
    return (*(sum(row[n] for row in rows) for n in range(3)),
            *(dict(sum((Counter({bin: n for bin, n in enumerate(row[times], 1) if n})
                        for row in rows), Counter())) for times in (3, 4)))


AS_TRIED = """
    SELECT bins.n, count(*) FROM (
        SELECT postrider.histogram_bin({time}) AS n
          FROM postrider.attempt a
          JOIN postrider.delivery d ON d.id = a.delivery_id
          JOIN postrider.event e USING (event_no)
         WHERE d.subscription_id = {subscription}) bins
     WHERE bins.n IS NOT NULL GROUP BY 1"""


def test_the_history_of_a_batch_is_what_its_attempts_say(queue, db):
    """Of several subscriptions at once, with times that differ."""
    other = type(queue)(db)
    for mine in queue, other:
        for n in range(6):
            mine.accept(f"e{mine.id}-{n}", f"a{n}")
    db.execute("UPDATE postrider.event SET accepted_at = now() - event_no * interval '7 ms'")
    leases = queue.claim()
    accepted = dict(db.rows("SELECT event_id, (1000000 * extract(epoch FROM accepted_at))::bigint"
                            " FROM postrider.event"))
    verdicts = ["delivered", "delivered", "retry", "dead", "delivered", "retry"] * 2
    statuses = {"delivered": 204, "retry": 503, "dead": 404}
    queue.transaction(lambda c: record_all(
        c, [lane for lane, _, _ in leases], [token for _, token, _ in leases], verdicts,
        statuses=[statuses[verdict] for verdict in verdicts], hands_back=False,
        durations=[100 * 3 ** n for n in range(11)] + [None],
        accepted_us=[accepted[event] for _, _, event in leases]))
    count_all(db)
    for mine in queue, other:
        tried = db.rows("SELECT count(*) FILTER (WHERE a.status < 300),"
                        " count(*) FILTER (WHERE a.status >= 300),"
                        " count(*) FILTER (WHERE a.status = 404) FROM postrider.attempt a"
                        " JOIN postrider.delivery d ON d.id = a.delivery_id"
                        " WHERE d.subscription_id = %s", (mine.id,))[0]
        *numbers, attempt_times, delivery_times = history_of(db, mine.id)
        assert tuple(numbers) == tried == (3, 3, 1)
        assert attempt_times == dict(db.rows(AS_TRIED.format(
            subscription=mine.id, time="a.duration_us")))
        assert delivery_times == dict(db.rows(AS_TRIED.format(
            subscription=mine.id, time="CASE WHEN a.status < 300 THEN 1000000"
            " * date_part('epoch', d.finished_at - e.accepted_at) END")))
    assert counts(db) == (6, 6, 2)


def test_a_step_takes_no_more_than_its_share_and_records_whole(queue, db):
    until(lambda: db.value("SELECT extract(second FROM now()) > 0.2"), "they are of one minute")
    deliver(db, queue, 1000)
    done = []
    while counts(db) != (1000, 0, 0):
        done.append(step(db.connection, *counting(295, 295, 1)))
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
        ), tried AS (
            INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, duration_us,
                                                 ended, status, worker)
            SELECT no + 1, 1, 1, 1000 * g, 'answered', 200, 'w' FROM fresh
        )
        INSERT INTO postrider.history_tally (recorded_at, verdict, subscription_ids, attempt_us,
                                             delivery_us)
        SELECT now() - {ago} - ({n} - g) / 10 * interval '1 ms', 'delivered',
               array_agg({queue.id}), array_agg(1000 * g), array_agg(1000 * g)
          FROM fresh GROUP BY 1""")
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
        step(db.connection, *counting(60, 60, 1))
    left = db.rows("SELECT seconds, count(*) FROM postrider.history_count WHERE subscription_id"
                   " = 7 GROUP BY seconds ORDER BY seconds")
    assert left[0][1] in (2, 3) and left[1][1] in (72, 73), left


OLD_ATTEMPTS = """
    INSERT INTO postrider.tenant (name) VALUES ('acme');
    INSERT INTO postrider.subscription (tenant_id, url, state)
    VALUES (1, 'https://example.com/', 'active'), (1, 'https://example.com/', 'deleted');
    INSERT INTO postrider.event (event_no, tenant_id, fan_out, event_id, type, fingerprint,
                                 accepted_at)
    SELECT g, 1, 1, g::text, 't', '', now() - interval '1 minute' FROM generate_series(1, 7) g;
    INSERT INTO postrider.delivery (id, event_no, subscription_id, state, generation, attempts)
    VALUES (1, 1, 1, 'delivered', 1, 1), (2, 2, 1, 'delivered', 1, 2), (3, 3, 1, 'dead', 1, 1),
           (4, 4, 1, 'delivered', 2, 1), (5, 5, 2, 'cancelled', 1, 1),
           (6, 6, 1, 'cancelled', 1, 1), (7, 7, 1, 'pending', 1, 0);
    INSERT INTO postrider.attempt (delivery_id, generation, attempt, duration_us, ended, status,
                                   worker, recorded_at)
    VALUES (1, 1, 1, 1000, 'answered', 200, 'w', now() - interval '2 s'),
           (2, 1, 1, 1000, 'answered', 503, 'w', now()),
           (2, 1, 2, 1000, 'answered', 204, 'w', now()),
           (3, 1, 1, NULL, 'lease_expired', NULL, 'w', now()),
           (4, 1, 1, 1000, 'answered', 404, 'w', now()),
           (4, 2, 1, 1000, 'answered', 200, 'w', now()),
           (5, 1, 1, 1000, 'timed_out', NULL, 'w', now()),
           (6, 1, 1, 1000, 'answered', 404, 'w', now()),
           (7, 1, 1, 1000, 'answered', 200, 'w', NULL);
    UPDATE postrider.history_progress SET counted_until = now() - interval '1 s'"""


def test_what_was_not_counted_before_an_upgrade_is_counted_after_it(empty_db):
    db = empty_db
    db.execute((ROOT / "sql/schema_prepare.sql").read_text())
    for path in sorted((ROOT / "migrations").glob("*.sql")):
        if path.stem == "0017_tally":
            db.execute(OLD_ATTEMPTS)
        with db.connection.transaction():
            db.execute(path.read_text())
    assert db.value("SELECT count(*) FROM postrider.attempt") == 9, "all are on record"
    count_all(db)
    assert counts(db, 1, 60) == (2, 4, 3), "dead, dead and retried, dead and discarded"
    assert counts(db, 2, 60) == (0, 1, 0), "given up with its subscription"
    *_, attempt_times, delivery_times = history_of(db, 1)
    assert sum(attempt_times.values()) == 5
    assert delivery_times == {db.value("SELECT postrider.histogram_bin(6e7)"): 1}


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
        pages = {"step": self.call(*counting(100, 100, 1)),
                 "hour": self.call("history_list", tenant, "NULL", "NULL", 60, 60),
                 "day": self.call("history_list", "NULL", "NULL", "NULL", 900, 96),
                 "recent": self.call("state_recent", tenant, "NULL")}
        self.connection.execute("ROLLBACK")
        return pages


def costs(cluster, template, n):
    """{(when, what): pages} of a hundred attempts beside n, and what is left of their tallies."""
    from .replaying import Queue
    db = cluster.create(template)
    try:
        early = Explainer(cluster.connect(db.name))
        queue = Queue(db)
        reader = cluster.connect(db.name)  # nothing that it may still see is vacuumed away
        deliver(db, queue, n, "interval '1 day'")
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT FROM postrider.tenant")
        db.execute("DELETE FROM postrider.history_tally")
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
        for one in early.connection, late.connection, last.connection, reader:
            one.close()
        return found
    finally:
        db.drop()


def test_what_it_reads_does_not_grow(cluster, template):
    small, big = costs(cluster, template, 1000), costs(cluster, template, MANY)
    print({key: (small[key], big[key]) for key in small})
    grown = {key: (small[key], big[key]) for key in small if big[key] > 1.5 * small[key] + 100}
    assert grown == {}
