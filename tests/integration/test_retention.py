"""Payloads go, and later the log; ids stay; nothing goes that is not over."""

import re
from pathlib import Path

import psycopg
import pytest

from .statement import SQL, statement
from .wait import never, until

SESSION = (Path(__file__).parents[2] / "src/store/session.c").read_text()
DAY = 86_400_000_000
STEP = 300      # events and deliveries in one step
QUICK = {"poll": "50ms"}


@pytest.fixture
def subscription(api, endpoint):
    return int(api.subscribe(endpoint.url)["id"])


def age(db, days):
    """Make all that there is older."""
    db.execute(f"UPDATE postrider.event SET accepted_at = accepted_at - interval '{days} days'")
    db.execute(f"UPDATE postrider.delivery SET finished_at = finished_at - interval '{days} days'")
    db.execute("UPDATE postrider.retention_late SET due_at ="
               f" greatest(due_at - interval '{days} days', now())")


def make(db, n, days=40, state="delivered", subscriptions=1, attempts=1):
    """n events of that age, with as many deliveries each, all in the same state."""
    db.execute("INSERT INTO postrider.event (tenant_id, fan_out, event_id, type, fingerprint,"
               " body, accepted_at) SELECT t.id, %s, 'made-' || g, 't', '\\x00', '{}',"
               " now() - %s * interval '1 day' FROM postrider.tenant t,"
               " generate_series(1, %s) g", (subscriptions, days, n))
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, state,"
               " finished_at) SELECT nextval('postrider.position'), event_no, 1000 + g, %s,"
               " CASE %s WHEN 'pending' THEN NULL ELSE accepted_at END"
               " FROM postrider.event, generate_series(1, %s) g"
               " WHERE event_id LIKE 'made-%%'", (state, state, subscriptions))
    db.execute("INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, ended, worker)"
               " SELECT id, 1, g, 'answered', 'w' FROM postrider.delivery,"
               " generate_series(1, %s) g ON CONFLICT DO NOTHING", (attempts,))


def payloads(db):
    return db.value("SELECT count(body) FROM postrider.event")


def counts(db):
    return tuple(db.value(f"SELECT count(*) FROM postrider.{table}")
                 for table in ("event", "delivery", "attempt", "dead_letter"))


def test_a_payload_goes_and_its_id_stays_reserved(
        api, make_dispatch, db, endpoint, subscription):
    make_dispatch(**QUICK)
    accepted = api.event({"n": 1}, id="one", asset="a")
    until(lambda: db.value("SELECT state FROM postrider.delivery") == "delivered", "it is over")
    age(db, 6)
    never(lambda: payloads(db) == 0, "it goes before its time")
    age(db, 2)
    until(lambda: payloads(db) == 0, "the payload is gone")
    assert counts(db) == (1, 1, 1, 0), "and nothing else"
    again = api.post("/v1/events", {"type": "test.made", "data": {"n": 1}, "id": "one",
                                    "asset": "a"}).expect(200)
    assert again["id"] == accepted["id"] == "one"
    api.post("/v1/events", {"type": "test.made", "data": {"n": 2}, "id": "one",
                            "asset": "a"}).expect(409)
    assert len(endpoint.requests) == 1


def test_the_log_goes_later(api, make_dispatch, db, endpoint, subscription):
    endpoint.script(400, 200)
    make_dispatch(**QUICK)
    api.event({"n": 1}, id="one", asset="a")
    api.event({"n": 2}, id="two", asset="a")
    until(lambda: db.value("SELECT count(finished_at) FROM postrider.delivery") == 2, "all over")
    age(db, 29)
    until(lambda: payloads(db) == 0, "the payloads are gone")
    never(lambda: counts(db) != (2, 2, 2, 1), "the log goes before its time")
    age(db, 2)
    until(lambda: counts(db) == (2, 0, 0, 0), "the log is gone")
    api.post("/v1/events", {"type": "test.made", "data": {"n": 1}, "id": "one",
                            "asset": "a"}).expect(200)
    assert api.get("/v1/events/one").expect(200)["id"] == "one"


def test_an_event_that_nobody_wanted_goes_by_its_own_age(
        api, make_dispatch, db, subscription):
    db.execute("UPDATE postrider.subscription_pattern SET pattern = 'other'")
    api.event({"n": 1})
    age(db, 8)
    make_dispatch(**QUICK)
    until(lambda: payloads(db) == 0, "it is gone")


@pytest.mark.parametrize("what", ["pending", "held"])
def test_what_is_unfinished_stays_until_it_is_over_for_long(
        what, make_dispatch, db, subscription):
    """Also when the walk came by long ago.  A dead head that holds its lane waits."""
    make(db, 3, state="pending" if what == "pending" else "dead")
    db.execute("INSERT INTO postrider.lane (id, subscription_id, head_id, tail_id,"
               " head_event_no, asset) SELECT id, subscription_id, id, id, event_no, 'a' || id"
               " FROM postrider.delivery")
    make_dispatch(**QUICK)
    until(lambda: db.value("SELECT min(event_no) FROM postrider.retention")
          == db.value("SELECT max(event_no) FROM postrider.event"), "both walks came by")
    age(db, 40)
    never(lambda: payloads(db) < 3, "an unfinished one goes")
    until(lambda: db.value("SELECT count(*) FROM postrider.retention_late WHERE due_at >"
                           " now() + interval '6 days'") == 6, "they are for later")
    db.execute("DELETE FROM postrider.lane")
    db.execute("UPDATE postrider.delivery SET state = 'delivered', finished_at = now()")
    age(db, 8)
    until(lambda: payloads(db) == 0, "the payloads are gone")
    assert counts(db)[:2] == (3, 3)
    age(db, 30)
    until(lambda: counts(db) == (3, 0, 0, 0), "the log is gone")
    assert db.value("SELECT count(*) FROM postrider.retention_late") == 0


def test_young_ones_stop_the_walk(make_dispatch, db, subscription):
    make(db, 10)
    db.execute("UPDATE postrider.event SET accepted_at = now() WHERE event_id IN"
               " ('made-6', 'made-10')")
    make_dispatch(**QUICK)
    until(lambda: payloads(db) == 5, "those before the first young one are gone")
    never(lambda: payloads(db) != 5, "the walk passes a young one")


def test_several_dispatchers_share_the_walks(make_dispatch, db, subscription):
    make(db, 3000, subscriptions=2, attempts=3)
    dispatchers = [make_dispatch(**QUICK) for _ in range(3)]
    until(lambda: counts(db) == (3000, 0, 0, 0) and payloads(db) == 0, "all are gone", seconds=60)
    assert db.value("SELECT count(*) FROM postrider.retention_late") == 0
    assert not any("transaction failed" in d.log() for d in dispatchers)


def test_zero_keeps_for_ever(make_dispatch, db, subscription):
    make(db, 3, days=4000)
    make_dispatch(**QUICK, retention_payload="0s", retention_log="0s")
    never(lambda: counts(db) != (3, 3, 3, 0) or payloads(db) < 3, "something goes")


def test_without_the_log_only_payloads_go(make_dispatch, db, subscription):
    make(db, 3, days=4000)
    make_dispatch(**QUICK, retention_log="0s")
    until(lambda: payloads(db) == 0, "the payloads are gone")
    never(lambda: counts(db) != (3, 3, 3, 0), "the log goes")


def test_one_event_of_many_deliveries_and_one_of_many_attempts(
        make_dispatch, db, subscription):
    make(db, 1, subscriptions=5 * STEP)
    db.execute("INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, ended, worker)"
               " SELECT (SELECT min(id) FROM postrider.delivery), 2, g, 'answered', 'w'"
               " FROM generate_series(1, %s) g", (5 * 4 * STEP,))
    make_dispatch(**QUICK)
    until(lambda: counts(db) == (1, 0, 0, 0), "the log is gone", seconds=30)


def test_whoever_makes_one_pending_again_shuts_out_the_walk(
        make_dispatch, db, cluster, subscription):
    make(db, 3, days=8, state="dead")
    with cluster.connect(db.name) as retry:
        retry.autocommit = False
        retry.execute("SELECT FROM postrider.event WHERE event_id = 'made-2'"
                      " AND body IS NOT NULL FOR KEY SHARE")
        make_dispatch(**QUICK)
        until(lambda: payloads(db) == 1, "the others are gone")
        retry.execute("UPDATE postrider.delivery SET state = 'pending', finished_at = NULL"
                      " WHERE event_no = (SELECT event_no FROM postrider.event"
                      " WHERE event_id = 'made-2')")
        retry.commit()
    age(db, 1)
    never(lambda: payloads(db) == 0, "the payload of a pending delivery goes")
    assert db.rows("SELECT event_id FROM postrider.event WHERE body IS NOT NULL") == [
        ("made-2",)]


def test_whoever_comes_after_the_walk_finds_the_body_gone(db, cluster, subscription):
    """It waits for the walk's commit, and looks again."""
    make(db, 1, days=8)
    with cluster.connect(db.name) as walk, cluster.connect(db.name) as retry:
        walk.autocommit = False
        statement(walk, "retention_take", "payload", 7 * DAY, STEP)
        statement(walk, "retention_hold")
        retry.execute("SET lock_timeout = '100ms'")
        with pytest.raises(Exception, match="lock timeout"):
            retry.execute("SELECT FROM postrider.event FOR KEY SHARE")
        statement(walk, "retention_judge", "payload", 7 * DAY)
        statement(walk, "retention_payload")
        walk.commit()
        assert retry.execute("SELECT FROM postrider.event WHERE body IS NOT NULL"
                             " FOR KEY SHARE").fetchall() == []


def test_a_payload_can_be_forgotten_and_not_changed(db, cluster, subscription):
    make(db, 1)
    with cluster.connect(db.name) as dispatcher:
        dispatcher.execute("SET ROLE postrider_dispatch")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            dispatcher.execute("UPDATE postrider.event SET body = '{}'")
        dispatcher.execute("UPDATE postrider.event SET body = NULL")
    assert payloads(db) == 0


class Walk:
    """Steps by hand, on a dispatcher's session, and the buffers that each touches."""

    def __init__(self, connection, what, days):
        self.connection = connection
        self.args = f"'{what}', {days * DAY}"
        hold = ["retention_hold"] if what == "payload" else []
        forget = (["retention_payload"] if what == "payload" else
                  [f"retention_attempts ({STEP})", f"retention_log ({STEP})"])
        self.calls = [f"retention_take ({self.args}, {STEP})", *hold,
                      f"retention_judge ({self.args})", *forget]
        for name, value in re.findall(r'\{ "(\w+)", "(\w+)" \}', SESSION):
            connection.execute(f"SET {name} = {value}")
        for call in [*self.calls, "retention_next"]:
            name = call.split()[0]
            connection.execute(f"PREPARE {name} AS {(SQL / f'{name}.sql').read_text()}")

    def _call(self, execute):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {execute}").fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def step(self):
        """Buffers, events, and in how many microseconds there is more."""
        with self.connection.transaction():
            buffers = sum(map(self._call, self.calls))
            return buffers, *self.connection.execute(
                f"EXECUTE retention_next ({self.args})").fetchone()


@pytest.mark.parametrize("what, days", [("payload", 7), ("log", 30)])
def test_a_step_is_bounded_and_does_not_grow_with_what_is_gone(
        what, days, db, cluster, subscription):
    """Even while something holds back vacuum."""
    make(db, 20 * STEP)
    if what == "log":
        db.execute("UPDATE postrider.event SET body = NULL")
        db.execute("UPDATE postrider.retention SET event_no = (SELECT max(event_no)"
                   " FROM postrider.event) WHERE what = 'payload'")
    steps = []
    with cluster.connect(db.name) as old, cluster.connect(db.name) as connection:
        old.autocommit = False
        old.execute("SELECT count(*) FROM postrider.tenant")
        walk = Walk(connection, what, days)
        while not steps or steps[-1][1]:
            steps.append(walk.step())
    buffers, taken, waits = zip(*steps)
    assert list(taken) == [STEP // 2] * 40 + [0]
    assert list(waits) == [0] * 39 + [None] * 2
    assert max(buffers[2:]) < 1.5 * buffers[1] + 100, buffers


def test_a_step_that_left_what_is_soon_due_waits_for_more(db, cluster, subscription):
    """Not for each event that grows old there is a transaction."""
    make(db, 2)
    db.execute("UPDATE postrider.event SET accepted_at = now() - interval '7 days' +"
               " interval '1 second' WHERE event_id = 'made-2'")
    with cluster.connect(db.name) as connection:
        _, did, wait = Walk(connection, "payload", 7).step()
    assert did == 1
    assert 9_000_000 < wait <= 11_000_000


def test_a_step_is_followed_by_a_rest_of_five_times_its_length(
        make_dispatch, db, subscription):
    """However slow the database is, most of the connection's time is for claims."""
    db.execute("CREATE TABLE public.step (at timestamptz)")
    db.execute("GRANT INSERT ON public.step TO PUBLIC")
    db.execute("CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
               " PERFORM pg_sleep(0.2); INSERT INTO public.step VALUES (clock_timestamp());"
               " RETURN NULL; END $$")
    db.execute("CREATE TRIGGER slow AFTER UPDATE OF body ON postrider.event"
               " FOR EACH STATEMENT EXECUTE FUNCTION public.slow()")
    make(db, 4 * STEP // 2)
    make_dispatch(**QUICK, retention_log="0s")
    until(lambda: payloads(db) == 0, "all payloads are gone", seconds=30)
    gaps = [gap for gap, in db.rows("SELECT extract(epoch FROM at - lag(at) OVER (ORDER BY at))"
                                    "::float8 FROM public.step ORDER BY at LIMIT 4") if gap]
    assert len(gaps) == 3 and min(gaps) > 6 * 0.2, gaps


def test_without_a_subscription_nothing_is_asked(make_dispatch, db):
    make_dispatch(**QUICK)

    def sessions():
        return db.rows("SELECT state, query_start, query LIKE '%subscription_exists%'"
                       " FROM pg_stat_activity WHERE application_name LIKE 'postrider-dispatch%'"
                       " ORDER BY application_name")
    until(lambda: [(state, is_last) for state, _, is_last in sessions()]
          == [("idle", True), ("idle", False)], "it has asked whether there is any")
    before = sessions()
    never(lambda: sessions() != before, "it asks again")
