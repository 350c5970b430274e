"""What a deleted subscription has unfinished is cancelled, in small steps."""

import re
from pathlib import Path

import pytest

from .statement import SQL, accept, accept_all, announce, append
from .wait import never, until

SESSION = (Path(__file__).parents[2] / "src/store/session.c").read_text()
STEP = 200      # deliveries in one step
DEEP = 1500     # deliveries in one lane


def delete(db, subscription):
    """As the API does it."""
    with db.connection.transaction():
        db.execute("UPDATE postrider.subscription SET state = 'deleted' WHERE id = %s",
                   (subscription,))
        db.execute("UPDATE postrider.turn SET rest = 'deleted', entered_at = NULL, wake_at = now()"
                   " WHERE subscription_id = %s", (subscription,))
        db.execute("NOTIFY postrider_work, 'chore'")


def states(db):
    return dict(db.rows("SELECT state, count(*) FROM postrider.delivery GROUP BY state"))


def lanes(db):
    return db.value("SELECT count(*) FROM postrider.lane")


def turn(db, subscription):
    return db.rows("SELECT rest, wake_at FROM postrider.turn WHERE subscription_id = %s",
                   (subscription,))[0]


@pytest.fixture
def paused(api, db, endpoint):
    """A subscription that gets events and sends none; deleting it is all that moves it."""
    made = int(api.subscribe(endpoint.url)["id"])
    db.execute("UPDATE postrider.subscription SET state = 'paused'")
    db.execute("UPDATE postrider.turn SET rest = 'paused', entered_at = NULL")
    return made


@pytest.fixture
def tenant_id(db, tenant):
    return db.value("SELECT id FROM postrider.tenant")


@pytest.fixture
def fill(db, cluster, tenant_id):
    """n events for a subscription, all of one asset or of one each."""
    def fill(subscription, n, asset=None):
        with cluster.connect(db.name) as connection, connection.transaction():
            for first in range(0, n, 500):
                ids = [f"{asset or 'e'}{i}" for i in range(first, min(first + 500, n))]
                accept_all(connection, tenant_id, ids, subscription,
                           [asset] * len(ids) if asset else ids)
            announce(connection)
    return fill


def test_lanes_of_every_kind_go_and_the_turn_sleeps(
        api, make_dispatch, db, endpoint, paused, fill):
    fill(paused, 300)
    fill(paused, DEEP, asset="deep")
    db.execute("UPDATE postrider.subscription SET ordering = 'none'")
    for n in range(3):
        api.event({"n": n})
    dispatch = make_dispatch(poll="1h")
    delete(db, paused)
    until(lambda: lanes(db) == 0, "all lanes are gone", seconds=30)
    assert states(db) == {"cancelled": 300 + DEEP + 3}
    assert db.value("SELECT count(*) FROM postrider.delivery WHERE finished_at IS NULL") == 0
    until(lambda: not db.rows("SELECT FROM postrider.cancelling"), "the walk is over")
    assert turn(db, paused) == ("deleted", None)
    assert endpoint.requests == []
    assert dispatch.is_running()


def test_a_replay_that_waits_is_cancelled_with_its_lane(make_dispatch, db, paused, fill):
    """As the head, with its lane's course behind it, and in the queue for it."""
    fill(paused, 5, asset="a")
    ids = [n for n, in db.rows("SELECT id FROM postrider.delivery ORDER BY id")]
    db.execute("UPDATE postrider.lane SET head_id = %s, resume_id = %s, head_event_no ="
               " (SELECT event_no FROM postrider.delivery WHERE id = %s), attempts = 3",
               (ids[0], ids[3], ids[0]))
    db.execute("UPDATE postrider.delivery SET state = 'delivered', finished_at = now()"
               " WHERE id = %s", (ids[1],))
    db.execute("INSERT INTO postrider.replay SELECT lane_id, id FROM postrider.delivery"
               " WHERE id = %s", (ids[2],))
    make_dispatch()
    delete(db, paused)
    until(lambda: lanes(db) == 0, "the lane is gone")
    assert db.rows("SELECT state, attempts FROM postrider.delivery ORDER BY id") == [
        ("cancelled", 3), ("delivered", 0), *[("cancelled", 0)] * 3]
    assert db.value("SELECT count(*) FROM postrider.replay") == 0


def test_more_replays_than_a_step_takes(make_dispatch, db, paused, fill):
    """The lane goes on from one to the next, and then to its course."""
    fill(paused, 2 * STEP + 50, asset="a")
    db.execute("INSERT INTO postrider.replay SELECT lane_id, id FROM postrider.delivery"
               " ORDER BY id OFFSET 1 LIMIT %s", (STEP + 30,))
    db.execute("UPDATE postrider.lane SET resume_id = (SELECT max(delivery_id) + 1"
               " FROM postrider.replay)")
    make_dispatch()
    delete(db, paused)
    until(lambda: lanes(db) == 0, "the lane is gone")
    assert states(db) == {"cancelled": 2 * STEP + 50}
    assert db.value("SELECT count(*) FROM postrider.replay") == 0


def test_a_lane_held_by_a_dead_letter_goes_and_the_dead_letter_stays(
        api, make_dispatch, db, endpoint):
    made = int(api.subscribe(endpoint.url, on_dead="hold")["id"])
    endpoint.script(400)
    make_dispatch()
    for n in range(3):
        api.event({"n": n}, asset="a")
    until(lambda: states(db).get("dead") == 1, "the head is dead")
    delete(db, made)
    until(lambda: lanes(db) == 0, "the lane is gone")
    assert states(db) == {"dead": 1, "cancelled": 2}
    assert db.value("SELECT count(*) FROM postrider.dead_letter") == 1


def test_what_is_under_way_is_finished_and_then_its_lane_goes(
        api, make_dispatch, db, endpoint):
    made = int(api.subscribe(endpoint.url, timeout_ms=60000)["id"])
    answers = []
    endpoint.script(lambda handler, _: answers.append(handler) or until(
        lambda: "go" in answers, "the test lets it answer") and handler.send_response(200)
        or handler.send_header("Content-Length", "0") or handler.end_headers())
    make_dispatch()
    for n in range(3):
        api.event({"n": n}, asset="a")
    api.event({"n": 3}, asset="b")
    until(lambda: len(endpoint.requests) == 2, "both lanes are leased")
    delete(db, made)
    until(lambda: turn(db, made) == ("deleted", None)
          and not db.rows("SELECT FROM postrider.cancelling"), "the walk is over")
    assert (lanes(db), states(db)) == (2, {"pending": 4}), "leased lanes are left as they are"
    answers.append("go")
    until(lambda: lanes(db) == 0, "their outcomes begin another walk")
    assert states(db) == {"delivered": 2, "cancelled": 2}
    assert len(endpoint.requests) == 2
    until(lambda: turn(db, made) == ("deleted", None), "the turn sleeps")


def test_a_deletion_is_noticed(api, make_dispatch, db, endpoint):
    """Not when the dispatcher happens to look: the second comes after its first look."""
    made = [int(api.subscribe(endpoint.url)["id"]) for _ in range(2)]
    make_dispatch(poll="1h")
    for subscription in made:
        delete(db, subscription)
        until(lambda: turn(db, subscription) == ("deleted", None), "the turn sleeps", seconds=3)


def test_a_retry_after_the_deletion_is_cancelled_at_once(api, make_dispatch, db, endpoint):
    """Not when it falls due."""
    made = int(api.subscribe(endpoint.url, retry_base_ms=3600000)["id"])
    endpoint.script(503)
    make_dispatch()
    api.event({"n": 1}, asset="a")
    until(lambda: db.value("SELECT due_at > now() FROM postrider.lane"), "it waits")
    delete(db, made)
    until(lambda: states(db) == {"cancelled": 1}, "it is cancelled")
    assert db.value("SELECT attempts FROM postrider.delivery") == 1, "and what it had is kept"


def test_an_event_that_races_the_deletion_is_cancelled_too(
        make_dispatch, db, cluster, paused, tenant_id):
    """Its transaction matched the subscription before, and commits after the walk."""
    make_dispatch()
    with cluster.connect(db.name) as late:
        late.autocommit = False
        append(late, tenant_id, paused, "late", "a")
        delete(db, paused)
        until(lambda: turn(db, paused) == ("deleted", None)
              and not db.rows("SELECT FROM postrider.cancelling"), "the walk is over")
        announce(late)
        late.commit()
    until(lambda: states(db) == {"cancelled": 1} and lanes(db) == 0, "it is cancelled")


def test_a_walk_does_not_end_while_somebody_makes_work(
        make_dispatch, db, cluster, paused, tenant_id):
    """Who has announced it already would not wake the turn again."""
    with cluster.connect(db.name) as late:
        late.autocommit = False
        db.execute("UPDATE postrider.turn SET rest = 'deleted', entered_at = NULL, wake_at = now()")
        accept(late, tenant_id, paused, "late", "a")
        db.execute("UPDATE postrider.subscription SET state = 'deleted'")
        make_dispatch(poll="50ms")
        never(lambda: turn(db, paused) == ("deleted", None), "the mark is taken away")
        late.commit()
    until(lambda: states(db) == {"cancelled": 1} and lanes(db) == 0, "it is cancelled")


def test_a_lane_that_somebody_holds_is_come_back_to(make_dispatch, db, cluster, paused, fill):
    """A claim that was on its way, say, and was rolled back."""
    fill(paused, 3)
    with cluster.connect(db.name) as other:
        other.autocommit = False
        other.execute("SELECT FROM postrider.lane WHERE asset = 'e1' FOR NO KEY UPDATE")
        make_dispatch(poll="1h")
        delete(db, paused)
        until(lambda: db.value("SELECT look_at > now() FROM postrider.cancelling"),
              "the walk came to its end and is to begin anew")
        assert lanes(db) == 1
        other.rollback()
    until(lambda: lanes(db) == 0, "and now the last")


def test_many_dispatchers_and_many_deleted_subscriptions(
        api, make_dispatch, db, endpoint, fill):
    made = [int(api.subscribe(endpoint.url)["id"]) for _ in range(5)]
    db.execute("UPDATE postrider.subscription SET state = 'paused'")
    db.execute("UPDATE postrider.turn SET rest = 'paused', entered_at = NULL")
    for subscription in made:
        fill(subscription, 250, asset=f"s{subscription}-")
    for _ in range(3):
        make_dispatch(poll="100ms")
    for subscription in made:
        delete(db, subscription)
    until(lambda: lanes(db) == 0, "all are gone", seconds=30)
    assert states(db) == {"cancelled": 5 * 250}
    until(lambda: not db.rows("SELECT FROM postrider.cancelling"), "the walks are over")


class Walk:
    """Steps by hand, on a dispatcher's session, and the buffers that each touches."""

    def __init__(self, connection):
        self.connection = connection
        for name, value in re.findall(r'\{ "(\w+)", "(\w+)" \}', SESSION):
            connection.execute(f"SET {name} = {value}")
        for name in ("cancel_begin", "cancel_hold", "cancel_deliveries", "cancel_lanes"):
            connection.execute(f"PREPARE {name} AS {(SQL / f'{name}.sql').read_text()}")

    def _call(self, execute):
        plan = self.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {execute}").fetchone()[0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

    def step(self):
        with self.connection.transaction():
            return sum(map(self._call, (
                "cancel_begin (20)", "cancel_hold (100)", f"cancel_deliveries ({STEP})",
                "cancel_lanes")))


@pytest.mark.parametrize("asset", ["deep", None], ids=["one lane", "many lanes"])
def test_a_step_is_bounded_and_does_not_grow_with_what_is_gone(
        db, cluster, paused, fill, asset):
    """Even while something holds back vacuum."""
    fill(paused, 10 * STEP, asset)
    delete(db, paused)
    done, buffers = [0], []
    with cluster.connect(db.name) as old, cluster.connect(db.name) as connection:
        old.autocommit = False
        old.execute("SELECT count(*) FROM postrider.tenant")
        walk = Walk(connection)
        while lanes(db):
            buffers.append(walk.step())
            done.append(states(db)["cancelled"])
    assert done[-1] == 10 * STEP
    assert max(after - before for before, after in zip(done, done[1:])) <= STEP
    assert max(buffers[1:]) < 1.5 * buffers[1] + 100, buffers
