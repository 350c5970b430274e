"""Where an event goes is guessed by where the last one went: a wrong guess costs a trip, no more."""

import pytest

from .wait import until

FITS_NONE = '$.data.kind == "b"'


@pytest.fixture
def ingest(make_ingest):
    """One memory: what the first event taught, the next goes by."""
    return make_ingest(writers=1)


@pytest.fixture
def made(api, endpoint):
    """A subscription whose type, and what it goes to, is remembered."""
    made = api.subscribe(endpoint.url, event_types=["test.made"])
    api.event({"kind": "a"}, id="first", asset="pump")
    return made


def lanes(db, event_id):
    """Of each delivery of an event: its subscription, and whether it is in order."""
    return db.rows(
        "SELECT d.subscription_id, d.lane_id IS NOT NULL FROM postrider.event e"
        " JOIN postrider.delivery d USING (event_no) WHERE e.event_id = %s ORDER BY 1",
        (event_id,))


def path(made):
    return f"/v1/subscriptions/{made['id']}"


# What is changed behind the memory's back; where the next event goes then.
CHANGES = {
    "nothing": (lambda api, made: None, [(1, True)]),
    "one more subscribes": (
        lambda api, made: api.subscribe(made["url"], event_types=["test.made"]), [(1, True), (2, True)]),
    "one more subscribes to all there is": (
        lambda api, made: api.subscribe(made["url"]), [(1, True), (2, True)]),
    "it is paused": (
        lambda api, made: api.post(path(made) + "/pause").expect(200), [(1, True)]),
    "it is disabled": (
        lambda api, made: api.post(path(made) + "/disable").expect(200), []),
    "it is deleted": (lambda api, made: api.delete(path(made)).expect(204), []),
    "another takes its place": (
        lambda api, made: (api.delete(path(made)).expect(204),
                           api.subscribe(made["url"], event_types=["test.made"])), [(2, True)]),
    "it wants other types": (
        lambda api, made: api.patch(path(made), {"event_types": ["u"]}).expect(200), []),
    "it wants no order any more": (
        lambda api, made: api.patch(path(made), {"ordering": "none"}).expect(200), [(1, False)]),
    "it has a filter": (
        lambda api, made: api.patch(path(made), {"filter": FITS_NONE}).expect(200), []),
}


@pytest.mark.parametrize("change, goes_to", CHANGES.values(), ids=CHANGES)
def test_an_event_goes_where_it_goes_now(api, db, made, change, goes_to):
    change(api, made)
    answer = api.event({"kind": "a"}, id="second", asset="pump")
    assert lanes(db, "second") == goes_to
    assert answer["deliveries"] == len(goes_to)


def test_where_events_go_that_nobody_wanted_is_guessed_too(api, db, endpoint):
    api.event({}, id="first")
    api.event({}, id="second")
    api.subscribe(endpoint.url)
    api.event({}, id="third")
    assert [lanes(db, event) for event in ("first", "second", "third")] == [[], [], [(1, False)]]


@pytest.mark.parametrize("end", ["revoked_at = now()", "expires_at = now()"])
def test_a_key_that_is_worth_nothing_any_more_opens_nothing(api, db, made, end):
    """Ingest itself remembers it for a moment."""
    api.event({}, id="second")
    db.execute(f"UPDATE postrider.api_key SET {end}")
    api.post("/v1/events", {"id": "third", "type": "test.made", "data": {}}).expect(401)
    assert db.value("SELECT count(*) FROM postrider.event") == 2


def test_a_batch_is_not_refused_by_a_guess(api, db, made):
    """It would say that two of its events conflict, to somebody whose key opens nothing."""
    lines = (b'{"id":"x","type":"test.made","data":1}\n{"id":"x","type":"test.made","data":2}')

    def post():
        return api.post("/v1/events/batch", lines,
                        headers={"Content-Type": "application/x-ndjson"})

    post().expect(409)
    db.execute("UPDATE postrider.api_key SET revoked_at = now()")
    post().expect(401)
    assert db.value("SELECT count(*) FROM postrider.event") == 1


def test_an_id_that_is_known_is_held_against_the_first(api, db, made):
    again = {"id": "first", "type": "test.made", "data": {"kind": "a"}, "asset": "pump"}
    api.post("/v1/events", again).expect(200)
    api.post("/v1/events", {**again, "data": {}}).expect(409)
    assert db.value("SELECT count(*) FROM postrider.delivery") == 1


def test_a_wrong_guess_writes_nothing(api, db, made, make_dispatch):
    """No position is drawn, and no turn is told of work: not even its lock is had."""
    dispatch = make_dispatch()
    until(lambda: db.rows("SELECT t.rest, d.state FROM postrider.turn t, postrider.deliveries d")
          == [("idle", "delivered")], "all is sent")
    dispatch.stop()  # it would lock the turn, too
    watched = ("SELECT p.last_value, t.xmin::text, t.xmax::text"
               " FROM postrider.position p, postrider.turn t")
    before = db.rows(watched)
    again = {"id": "first", "type": "test.made", "data": {"kind": "a"}, "asset": "pump"}
    api.post("/v1/events", again).expect(200)
    assert db.rows(watched) == before
