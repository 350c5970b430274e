"""delivery_taken: the short way to record, which decides nothing that is not plain."""

import json
import threading

import pytest

from . import statement
from .statement import accept, append, bodies
from .test_queue import in_thread, sessions, subscription, waiting  # noqa: F401 (fixtures)
from .wait import until

KEPT = ("lane", "delivery", "other_attempt", "dead_letter", "replay", "turn", "audit")


@pytest.fixture
def session(db, cluster):
    with cluster.connect(db.name) as connection:
        yield connection


def put(db, cluster, subscription, *assets):
    with cluster.connect(db.name) as connection, connection.transaction():
        for n, asset in enumerate(assets):
            accept(connection, *subscription, f"{asset}-{n}", asset)


def claim(session):
    """{asset: (lane, token)}"""
    with session.transaction():
        statement.claim(session)
    return {asset: (lane, token) for asset, lane, token in session.execute(
        "SELECT asset, id, lease_token FROM postrider.lane WHERE lease_token IS NOT NULL")}


def all_rows(db):
    return {table: db.rows(f"SELECT t::text FROM postrider.{table} t ORDER BY 1") for table in KEPT}


def taken_alone(session, lanes, tokens, shared=False, **how):
    """As statement.taken(), of one lane that goes on."""
    assert not shared
    return statement.taken_one(session, *lanes, *tokens, **how)


WAYS = pytest.mark.parametrize("taken", (statement.taken, taken_alone), ids=("many", "one"))


@WAYS
def test_what_was_taken_is_recorded_and_its_lane_goes_on(
        db, cluster, session, subscription, taken):
    put(db, cluster, subscription, "a", "a", "a")
    first, second, third = (row[0] for row in db.rows(
        "SELECT id FROM postrider.delivery ORDER BY id"))
    lane, token = claim(session)["a"]
    again = taken(session, [lane], [token])
    assert set(again) == {lane} and again[lane] != token
    assert db.rows("SELECT id, state, attempts, status FROM postrider.delivery ORDER BY id") == [
        (first, "delivered", 1, 204), (second, "pending", 0, None), (third, "pending", 0, None)]
    assert db.rows("SELECT delivery_id, generation, attempt, ended, status, worker, duration_us,"
                   " remote, reason FROM postrider.attempt") == [
        (first, 1, 1, "answered", 204, "worker", 1000, "192.0.2.1", None)]
    assert db.rows("SELECT head_id, tail_id, attempts, lease_token, due_at, lease_worker,"
                   " lease_until > now() FROM postrider.lane") == [
        (second, third, 1, again[lane], None, "worker", True)]
    assert bodies(session) == [row[0] for row in db.rows(
        "SELECT event_no FROM postrider.delivery WHERE id = %s", (second,))]
    assert taken(session, [lane], [token]) == {}, "the old token is worth nothing"
    assert set(taken(session, [lane], [again[lane]])) == {lane}


# What is behind the head, whether it may come back, how the turn rests.
FATES = {
    "goes on": (1, True, None),
    "goes on, of a turn at its limit": (1, True, "limit"),
    "lets others go first": (1, False, None),
    "lets others go first, of a turn at its limit": (1, False, "limit"),
    "lets others go first, of a turn that had nothing due": (1, False, "idle"),
    "ends": (0, True, None),
    "ends, of a turn at its limit": (0, True, "limit"),
    "ends, of a turn that had nothing due": (0, True, "idle"),
}


@pytest.mark.parametrize("behind, hands_back, rest", FATES.values(), ids=FATES)
def test_all_ways_to_record_leave_the_same(
        db, cluster, session, subscription, behind, hands_back, rest):
    ways = {"a": statement.taken, "b": statement.record_all}
    if behind and hands_back:
        ways["c"] = taken_alone
    put(db, cluster, subscription, *(1 + behind) * "".join(ways))
    leases = claim(session)
    db.execute("UPDATE postrider.lane SET resume_at = now() + interval '1 h'")  # it is stale
    turns = []
    for asset, record in ways.items():
        db.execute("UPDATE postrider.turn SET rest = %s, entered_at = CASE WHEN %s::text IS NULL"
                   " THEN now() END, wake_at = CASE WHEN %s = 'idle' THEN now()"
                   " + interval '1 h' END", (rest, rest, rest))
        lane, token = leases[asset]
        with session.transaction():
            statement.turn_share(session, subscription[1])
            if record is statement.taken:
                statement.taken(session, [lane], [token], hands_back=hands_back, shared=True)
            elif record is taken_alone:
                taken_alone(session, [lane], [token])
            else:
                statement.record_all(session, [lane], [token], ["delivered"], statuses=[204],
                                     hands_back=hands_back)
                statement.settle(session, subscription[1], lane, says=1)
        turns.append(db.rows("SELECT rest, wake_at > now(), entered_at IS NULL FROM postrider.turn"))
    assert len(set(map(str, turns))) == 1
    left = ([db.rows(text, (leases[asset][0],)) for text in (
        "SELECT head_id > id, tail_id - head_id, attempts, due_at <= now(), num_nulls(lease_token,"
        " lease_until, look_at, leased_at), lease_worker, lease_until > look_at, resume_id,"
        " resume_at FROM postrider.lane WHERE id = %s",
        "SELECT state, attempts, status, generation, finished_at IS NOT NULL"
        " FROM postrider.delivery WHERE lane_id = %s ORDER BY id",
        "SELECT generation, attempt, ended, status, duration_us, worker, reason, dns_us,"
        " connect_us, tls_us, wait_us, receive_us, headers, excerpt, started_at < now()"
        " FROM postrider.attempt WHERE delivery_id IN"
        " (SELECT id FROM postrider.delivery WHERE lane_id = %s)")] for asset in ways)
    short, *others = left
    assert [short] * len(others) == others
    assert [len(rows) for rows in short] == [behind, 1 + behind, 1]


def test_what_comes_back_is_told_first_and_a_turn_that_is_back_in_the_round(
        db, cluster, session, subscription):
    put(db, cluster, subscription, "a", "b", "b", "c", "d", "d")
    leases = claim(session)
    db.execute("UPDATE postrider.turn SET rest = 'limit', entered_at = NULL")
    lanes, tokens = map(list, zip(*(leases[asset] for asset in "abcd")))
    told = statement.taken(session, lanes, tokens, shared=True)
    assert [token is not None for token in told.values()] == [True, True, False, False]
    assert set(told) == set(lanes) and set(list(told)[:2]) == {lanes[1], lanes[3]}
    assert bodies(session) == [row[0] for row in db.rows(
        "SELECT head_event_no FROM postrider.lane ORDER BY array_position(%s, id)", (list(told),))]
    assert db.value("SELECT rest FROM postrider.turn") is None


@pytest.mark.parametrize("asset, rest, wakes", [
    ("a", "limit", True), ("a", "idle", False), ("a", None, False), ("b", "limit", False)])
def test_whether_a_turn_woke_is_told(db, cluster, session, subscription, asset, rest, wakes):
    put(db, cluster, subscription, "a", "b", "b")
    lane, token = claim(session)[asset]
    db.execute("UPDATE postrider.turn SET rest = %s, entered_at = CASE WHEN %s::text IS NULL"
               " THEN now() END", (rest, rest))
    row, = statement.taken_rows(session, [lane], [token], shared=True)
    assert row["wake_in_us"] == (0 if wakes else None)


NOT_PLAIN = {
    "the lease ran out":
        "UPDATE postrider.lane SET lease_until = now() - interval '1 ms'",
    "the subscription was changed":
        "UPDATE postrider.subscription SET version = version + 1",
    "the subscription is paused":
        "UPDATE postrider.subscription SET state = 'paused'",
    "it has a rate":
        "UPDATE postrider.subscription SET rate_per_second = 10",
    "its circuit is half open":
        "UPDATE postrider.turn SET circuit = 'half_open'",
    "a failure went before, which this success has to end":
        "UPDATE postrider.turn SET failures = 1",
    "its endpoint is slowed down":
        "UPDATE postrider.turn SET slowed_to = 5, slowed_at = now()",
    "its turn rests for a reason that has to be settled":
        "UPDATE postrider.turn SET rest = 'slowed', wake_at = now(),"
        " entered_at = NULL",
    "a replay waits in the lane":
        "INSERT INTO postrider.replay (lane_id, delivery_id)"
        " SELECT l.id, l.head_id FROM postrider.lane l WHERE asset = 'a'",
    "the head is itself a replay":
        "UPDATE postrider.lane SET resume_id = tail_id",
    "the next one was tried before":
        "UPDATE postrider.delivery SET attempts = 1 WHERE id = (SELECT max(id)"
        " FROM postrider.delivery WHERE lane_id IS NOT NULL)",
}
# Nor, unless turns are shared, is what lets go of its lane.
LETS_GO = {
    "nothing is behind it":
        "UPDATE postrider.delivery SET state = 'cancelled', finished_at = now() WHERE id ="
        " (SELECT tail_id FROM postrider.lane WHERE asset = 'a')",
    "another lane has waited for a second, and it had its turn":
        "WITH busy AS (UPDATE postrider.lane SET leased_at = now() - interval '1 s'"
        " WHERE asset = 'a') UPDATE postrider.lane SET due_at = now() - interval '2 s',"
        " lease_token = NULL, lease_until = NULL, lease_worker = NULL, look_at = NULL,"
        " leased_at = NULL WHERE asset = 'b'",
}


@pytest.mark.parametrize("taken, shared, change", [
    *((statement.taken, True, change) for change in NOT_PLAIN.values()),
    *((taken, False, change) for taken in (statement.taken, taken_alone)
      for change in (*NOT_PLAIN.values(), *LETS_GO.values()))])
def test_what_is_not_plain_is_left_as_it_was(
        db, cluster, session, subscription, taken, shared, change):
    put(db, cluster, subscription, "b", "a", "a")
    lane, token = claim(session)["a"]
    assert len(bodies(session)) == 2
    db.execute(change)
    before = all_rows(db)
    assert taken(session, [lane], [token], shared=shared) == {}
    assert all_rows(db) == before
    assert bodies(session) == [], "those of an earlier statement are not given again"


@pytest.mark.parametrize("change", LETS_GO.values(), ids=LETS_GO)
def test_a_lane_that_lets_go_is_recorded_where_turns_are_shared(
        db, cluster, session, subscription, change):
    put(db, cluster, subscription, "b", "a", "a")
    lane, token = claim(session)["a"]
    db.execute(change)
    assert statement.taken(session, [lane], [token], shared=True) == {lane: None}
    assert db.value("SELECT count(*) FROM postrider.attempt") == 1
    assert db.rows("SELECT FROM postrider.lane WHERE id = %s AND due_at IS NULL", (lane,)) == []
    assert bodies(session) == [], "nothing came back"


@pytest.mark.parametrize("goes_on", (False, True))
@pytest.mark.parametrize("says, change, kept", [
    (None, None, 0),
    ("thanks", None, 1),
    (None, "UPDATE postrider.lane SET attempts = 2", 1),
    (None, "UPDATE postrider.delivery SET generation = 2", 1),
])
def test_an_only_attempt_without_a_word_is_kept_in_its_delivery(
        db, cluster, session, subscription, says, change, kept, goes_on):
    put(db, cluster, subscription, *(1 + goes_on) * "a")
    lane, token = claim(session)["a"]
    if change:
        db.execute(change)
    if goes_on:
        assert set(taken_alone(session, [lane], [token], excerpt=says)) == {lane}
    else:
        assert statement.taken(
            session, [lane], [token], shared=True, excerpt=says) == {lane: None}
    assert db.value("SELECT count(*) FROM postrider.other_attempt") == kept
    assert db.rows("SELECT num_nonnulls(duration_us, worker, remote) FROM postrider.delivery"
                   " WHERE state = 'delivered'") == [(0 if kept else 3,)]
    assert db.rows(
        "SELECT a.generation = d.generation, attempt, ended, a.status, a.worker, a.remote,"
        " a.duration_us, excerpt, started_at = d.finished_at - interval '1 ms'"
        " FROM postrider.attempt a JOIN postrider.delivery d ON d.id = delivery_id") == [
        (True, 2 if change and "lane" in change else 1, "answered", 204, "worker", "192.0.2.1",
         1000, says, True)]


def test_one_that_is_not_plain_does_not_keep_back_the_others(db, cluster, session, subscription):
    put(db, cluster, subscription, "a", "a", "b", "c", "c")
    leases = claim(session)
    lanes, tokens = zip(*(leases[asset] for asset in "abc"))
    assert set(statement.taken(session, list(lanes), list(tokens))) == {lanes[0], lanes[2]}


def test_payloads_follow_in_the_order_of_the_rows(db, cluster, session, subscription):
    """Whatever that is: rows and payloads are matched one by one."""
    assets = "fcaebd"
    put(db, cluster, subscription, *assets, *assets)
    leases = claim(session)
    again = statement.taken(session, *map(list, zip(*(leases[asset] for asset in "cfbdae"))))
    heads = dict(db.rows("SELECT id, head_event_no FROM postrider.lane"))
    assert bodies(session) == [heads[lane] for lane in again]
    assert len(again) == len(assets)


@pytest.mark.parametrize("taken, assets, shared", [
    (statement.taken, "aa", False), (statement.taken, "aa", True), (statement.taken, "a", True),
    (taken_alone, "aa", False)])
def test_what_is_appended_meanwhile_is_for_the_long_way(
        db, cluster, subscription, sessions, taken, assets, shared):  # noqa: F811
    """It saw the tables before it had the lock."""
    first, second = sessions
    put(db, cluster, subscription, *assets)
    with second.transaction():
        statement.claim(second)
    second.commit()
    lane, token = db.rows("SELECT id, lease_token FROM postrider.lane")[0]
    append(first, *subscription, "next", "a")
    found = []
    join = in_thread(lambda: found.append(taken(second, [lane], [token], shared=shared)))
    until(lambda: waiting(db) == 1, "the record waits for the lane")
    first.commit()
    join()
    second.commit()
    assert found == [{}]
    assert db.value("SELECT count(*) FROM postrider.attempt") == 0


def test_a_lane_without_an_asset_that_another_takes_over_meanwhile_is_left(
        db, cluster, subscription, sessions):  # noqa: F811
    """Its row is deleted without a lock before: only as it was seen."""
    first, second = sessions
    put(db, cluster, subscription, None)
    with second.transaction():
        statement.claim(second)
    second.commit()
    lane, token = db.rows("SELECT id, lease_token FROM postrider.lane")[0]
    first.execute("UPDATE postrider.lane SET lease_token = gen_random_uuid()")
    found = []
    join = in_thread(lambda: found.append(statement.taken(second, [lane], [token], shared=True)))
    until(lambda: waiting(db) == 1, "the record waits for the lane")
    first.commit()
    join()
    second.commit()
    assert found == [{}]
    assert db.rows("SELECT id, lease_token <> %s FROM postrider.lane", [token]) == [(lane, True)]
    assert db.value("SELECT state FROM postrider.delivery") == "pending"


def test_two_at_once_lock_lanes_in_the_order_of_acceptance(
        db, cluster, subscription, sessions):  # noqa: F811
    """Whatever the order of its outcomes; else the two wait for each other."""
    first, second = sessions
    put(db, cluster, subscription, "a", "a", "b", "b")
    with second.transaction():
        statement.claim(second)
    second.commit()
    leases = dict(db.rows("SELECT id, lease_token FROM postrider.lane ORDER BY asset DESC"))
    append(first, *subscription, "next-a", "a")
    join = in_thread(lambda: statement.taken(second, list(leases), list(leases.values())))
    until(lambda: waiting(db) == 1, "the record waits for lane a")
    append(first, *subscription, "next-b", "b")
    first.commit()
    join()


def test_a_lane_that_lets_others_go_first_is_due_once_its_lock_was_had(
        db, cluster, subscription, sessions):  # noqa: F811
    """Claims do not look at what was due long ago, however long the record waited."""
    first, second = sessions
    put(db, cluster, subscription, "a", "a")
    with second.transaction():
        statement.claim(second)
    second.commit()
    lane, token = db.rows("SELECT id, lease_token FROM postrider.lane")[0]
    first.execute("SELECT FROM postrider.lane FOR UPDATE")
    join = in_thread(lambda: statement.taken(
        second, [lane], [token], hands_back=False, shared=True))
    until(lambda: waiting(db) == 1, "the record waits for the lane")
    waited_until = db.value("SELECT clock_timestamp()")
    first.rollback()
    join()
    second.commit()
    assert db.value("SELECT due_at FROM postrider.lane") > waited_until


def test_a_turn_is_not_let_rest_behind_the_back_of_a_record(
        db, cluster, subscription, sessions):  # noqa: F811
    """Which frees a place, or makes something due."""
    first, second = sessions
    put(db, cluster, subscription, "a")
    db.execute("UPDATE postrider.subscription SET max_in_flight = 1")
    with second.transaction():
        statement.claim(second)
    second.commit()
    put(db, cluster, subscription, "b")
    lane, token = db.rows("SELECT id, lease_token FROM postrider.lane WHERE asset = 'a'")[0]
    statement.turn_share(second, subscription[1])
    assert statement.taken(second, [lane], [token], shared=True) == {lane: None}
    statement.rest(first, subscription[1])
    first.commit()
    second.commit()
    assert db.value("SELECT rest FROM postrider.turn") is None


def test_a_claim_that_leases_nothing_clears_what_the_last_one_said(
        db, cluster, session, subscription):
    put(db, cluster, subscription, "a")
    claim(session)
    assert len(bodies(session)) == 1
    with session.transaction():
        assert statement.claim(session) == {}
    assert bodies(session) == []


def test_a_record_that_hands_nothing_back_clears_it_too(db, cluster, session, subscription):
    put(db, cluster, subscription, "a")
    lane, token = claim(session)["a"]
    assert len(bodies(session)) == 1
    with session.transaction():
        statement.record(session, lane, token, "delivered")
    assert bodies(session) == []


@pytest.fixture
def recorded_by(db):
    """Which statements recorded attempts, in order: {subscription: [statement]}."""
    db.execute("CREATE TABLE public.said (delivery_id bigint, statement text)")
    db.execute(r"""
        CREATE FUNCTION public.say() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
        BEGIN
            INSERT INTO public.said
            SELECT NEW.id, substring(current_query() FROM '^-- (\w+):');
            RETURN NULL;
        END $$""")
    db.execute("CREATE TRIGGER says AFTER UPDATE OF state ON postrider.delivery"
               " FOR EACH ROW EXECUTE FUNCTION public.say()")
    return lambda: dict(db.rows(
        "SELECT d.subscription_id, array_agg(s.statement ORDER BY d.id) FROM public.said s"
        " JOIN postrider.delivery d ON d.id = s.delivery_id GROUP BY 1"))


def test_a_dispatcher_goes_the_short_way_as_far_as_there_is_one(
        api, make_dispatch, endpoint, recorded_by):
    """Not at a rate, where no lane is handed back; for one that goes on the shortest."""
    plain = int(api.subscribe(endpoint.url)["id"])
    rated = int(api.subscribe(endpoint.url, rate_per_second=1000)["id"])
    api.post("/v1/events/batch", b"\n".join([b'{"type":"t","asset":"a","data":1}'] * 5),
             headers={"Content-Type": "application/x-ndjson"}).expect(202)
    make_dispatch()
    until(lambda: sum(map(len, recorded_by().values())) == 10, "all are recorded")
    assert recorded_by() == {plain: [*4 * ["delivery_taken_one"], "delivery_taken"],
                             rated: 5 * ["delivery_record"]}


def test_a_dispatcher_shares_the_turn_before_it_lets_go_of_a_lane(
        api, dispatch, db, endpoint, sessions):  # noqa: F811
    """Whoever lets the turn rest would else not see that a place is free."""
    go = threading.Event()

    def answer(handler, _):
        go.wait()
        handler.send_response(204)
        handler.end_headers()

    endpoint.script(answer)
    api.subscribe(endpoint.url)
    api.event({}, asset="a")
    until(lambda: endpoint.requests, "it is under way")
    sessions[0].execute("SELECT FROM postrider.turn FOR UPDATE")
    go.set()
    until(lambda: waiting(db) == 1, "the record waits for the turn")
    assert db.value("SELECT count(*) FROM postrider.attempt") == 0
    sessions[0].rollback()
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") == 1, "it is recorded")


def test_failures_and_successes_between_them_are_judged_in_their_order(
        api, make_dispatch, db, endpoint, make_endpoint, sessions):  # noqa: F811
    """Recorded apart, three failures would be three in a row, which open the circuit."""
    go = {name: threading.Event() for name in "abcdef"}
    answered, beside = threading.Semaphore(0), make_endpoint()

    def answer(handler, request):
        asset = json.loads(request.body)["asset"]
        go[asset].wait()
        handler.send_response(500 if asset in "bdf" else 200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        answered.release()

    endpoint.script(answer)
    make_dispatch(lease_margin="2m")  # and half of it for a statement
    made = api.subscribe(endpoint.url, event_types=["t"], circuit_after=3, retry_base_ms=3600000)
    api.subscribe(beside.url, event_types=["beside"])
    for asset in go:
        api.event({}, type="t", asset=asset)
    until(lambda: len(endpoint.requests) == len(go), "all are under way")
    sessions[0].execute("SELECT FROM postrider.lane WHERE asset = 'a' FOR UPDATE")
    go["a"].set()
    until(lambda: waiting(db) == 1, "a record waits")
    assert answered.acquire(timeout=10)
    for n, asset in enumerate("bcdef", 1):
        go[asset].set()
        assert answered.acquire(timeout=10)
        # Whoever sends this has looked at all that had come by then.
        api.event({}, type="beside")
        until(lambda: len(beside.requests) == n, "its answer has been read")
    sessions[0].rollback()
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt a JOIN postrider.delivery d"
                           " ON d.id = a.delivery_id WHERE d.subscription_id = %s",
                           (made["id"],)) == len(go), "all are recorded")
    assert db.rows("SELECT circuit, failures FROM postrider.turn WHERE subscription_id = %s",
                   (made["id"],)) == [("closed", 1)]


def test_what_the_short_way_leaves_is_recorded_the_long_way(
        api, make_dispatch, db, endpoint, recorded_by):
    """A failure went before: the first success has to end it."""
    made = int(api.subscribe(endpoint.url)["id"])
    db.execute("UPDATE postrider.turn SET failures = 1")
    api.post("/v1/events/batch", b"\n".join([b'{"type":"t","asset":"a","data":1}'] * 3),
             headers={"Content-Type": "application/x-ndjson"}).expect(202)
    dispatch = make_dispatch()
    until(lambda: len(recorded_by().get(made, [])) == 3, "all are recorded")
    assert recorded_by() == {made: 3 * ["delivery_record"]}
    assert db.value("SELECT failures FROM postrider.turn") == 0
    assert len(endpoint.requests) == 3
    assert "the lease was lost" not in dispatch.log()
