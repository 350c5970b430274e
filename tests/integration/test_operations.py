"""What happens to subscriptions is told as events, once, and what becomes of that is not."""

import json

import pytest

from .statement import record, statement
from .wait import never, until

QUICK = {"poll": "50ms"}
HOUR = 3_600_000_000
ENTRIES, DEAD, SUBSCRIPTIONS, EVERY = 200, 1000, 200, 60_000_000


@pytest.fixture
def operators(ingest, cli):
    """The operators' own tenant."""
    cli.json("tenant", "create", "postrider")
    return ingest.api(
        cli.json("key", "create", "--tenant", "postrider", "--role", "admin")["key"])


@pytest.fixture
def watch(make_endpoint):
    """Subscribe an endpoint of its own to operational events."""
    def make(api, *types, **fields):
        endpoint = make_endpoint()
        endpoint.made = api.subscribe(
            endpoint.url, event_types=list(types or ["postrider.*"]), **fields)["id"]
        return endpoint
    return make


def heard(endpoint):
    """What it was told, each once: what it is slow to take comes again."""
    events = [json.loads(request.body) for request in endpoint.requests]
    return list({event["id"]: event for event in events}.values())


def hears(endpoint, n=1):
    return until(lambda: len(events := heard(endpoint)) >= n and events, f"{n} are told")


def told(db):
    return db.value("SELECT count(*) FROM postrider.event WHERE starts_with(type, 'postrider.')")


def look_again(db):
    db.execute("UPDATE postrider.operation SET dead_at = '-infinity', backlog_at = '-infinity'")


def tell(connection, old=0):
    """A step as a dispatcher takes it, up to its commit; returns how much it came to."""
    statement(connection, "operation_take", ENTRIES)
    statement(connection, "operation_dead", DEAD, EVERY)
    statement(connection, "operation_backlog", old, SUBSCRIPTIONS, EVERY)
    statement(connection, "operation_accept")
    statement(connection, "work_share")
    statement(connection, "work_ready")
    return statement(connection, "operation_next").fetchone()[0]


@pytest.fixture
def step(queue, db):
    """Whole steps, by hand; the queue's tenant has a subscription that takes all."""
    db.execute("SET jit = off")  # as programs have it
    taker = queue.subscribe()
    db.execute("INSERT INTO postrider.subscription_pattern (tenant_id, pattern, subscription_id)"
               " VALUES (%s, 'postrider.*', %s)", (queue.tenant, taker))
    return lambda **how: queue.transaction(lambda connection: tell(connection, **how))


def bodies(db):
    """What was told so far: (type, data), in order."""
    return [(body["type"], body["data"]) for body in (
        json.loads(bytes(row[0])) for row in db.rows(
            "SELECT body FROM postrider.event WHERE starts_with(type, 'postrider.')"
            " ORDER BY event_no"))]


# -- what is told --

def test_a_subscription_that_is_disabled_is_told(
        api, operators, watch, make_dispatch, endpoint, db, cli):
    watcher = watch(operators, "postrider.subscription.*")
    endpoint.script(410)
    made = api.subscribe(endpoint.url)["id"]
    make_dispatch(**QUICK)
    api.event(1)
    [event] = hears(watcher)
    at = event["timestamp"]
    assert event == {
        "id": "postrider:audit:" + str(db.value(
            "SELECT number FROM postrider.audit WHERE actor = 'dispatch'")),
        "type": "postrider.subscription.disabled", "timestamp": at,
        "data": {"subscription_id": made, "tenant": "acme", "at": at, "by": "dispatch",
                 "reason": "the receiver answered 410 Gone"}}
    assert watcher.requests[0].headers["webhook-id"] == event["id"]
    assert operators.get(f"/v1/events/{event['id']}").expect(200)["type"] == event["type"]

    cli("subscription", "enable", made)
    cli("subscription", "disable", made)
    assert hears(watcher, 2)[1]["data"]["by"] == "cli"


def test_a_circuit_that_opens_is_told(api, operators, watch, make_dispatch, endpoint):
    watcher = watch(operators, "postrider.subscription.circuit_opened")
    endpoint.script(500)
    made = api.subscribe(endpoint.url, circuit_after=3, retry_base_ms=1, retry_cap_ms=1)["id"]
    make_dispatch(**QUICK)
    api.event(1)
    [event] = hears(watcher)
    assert event["type"] == "postrider.subscription.circuit_opened"
    assert event["data"] == {"subscription_id": made, "tenant": "acme", "by": "dispatch",
                             "at": event["timestamp"], "failures": 3}


def test_deliveries_that_die_are_told_with_their_count(
        api, operators, watch, make_dispatch, endpoint, db):
    watcher = watch(operators, "postrider.delivery.*")
    endpoint.script(404)
    made = api.subscribe(endpoint.url, circuit_after=0)["id"]
    make_dispatch(**QUICK)
    api.event(1, id="first")
    [event] = hears(watcher)
    data = event["data"]
    assert event["type"] == "postrider.delivery.dead"
    assert data == {"subscription_id": made, "tenant": "acme", "count": 1,
                    "first_at": event["timestamp"], "last_at": event["timestamp"],
                    "newest": {"event_id": "first", "reason": "HTTP status 404",
                               "delivery_id": data["newest"]["delivery_id"]}}
    api.get(f"/v1/subscriptions/{made}/deliveries/{data['newest']['delivery_id']}").expect(200)

    db.execute("UPDATE postrider.operation SET dead_at = dead_at + interval '1 hour'")
    for n in range(30):
        api.event(n)
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") == 31, "more die")
    never(lambda: len(heard(watcher)) > 1, "a second one before its time")
    look_again(db)
    assert hears(watcher, 2)[1]["data"]["count"] == 30
    never(lambda: len(heard(watcher)) > 2, "more than one for all of them")


def test_an_old_backlog_is_told_once_until_it_is_over(
        api, operators, watch, make_dispatch, endpoint, db):
    watcher = watch(operators, "postrider.backlog.old")
    made = api.subscribe(endpoint.url)["id"]
    api.post(f"/v1/subscriptions/{made}/pause").expect(200)
    make_dispatch(**QUICK, backlog_old="1h")
    api.event(1, id="old")
    look_again(db)
    never(lambda: told(db), "it is told while it is young")
    db.execute("UPDATE postrider.event SET accepted_at = now() - interval '61 minutes'"
               " WHERE event_id = 'old'")
    look_again(db)
    [event] = hears(watcher)
    data = event["data"]
    assert data == {"subscription_id": made, "tenant": "acme", "at": event["timestamp"],
                    "oldest_accepted_at": data["oldest_accepted_at"], "state": "paused",
                    "circuit": "closed"}
    assert event["type"] == "postrider.backlog.old"
    assert data["oldest_accepted_at"] < data["at"]
    look_again(db)
    never(lambda: len(heard(watcher)) > 1, "it is told again")

    api.post(f"/v1/subscriptions/{made}/resume").expect(200)
    until(lambda: db.value("SELECT count(*) FROM postrider.lane"
                           " WHERE subscription_id = %s", (made,)) == 0, "it is recorded")
    look_again(db)
    until(lambda: db.value("SELECT count(*) FROM postrider.operation_backlog") == 0, "it is over")
    api.post(f"/v1/subscriptions/{made}/pause").expect(200)
    api.event(1, id="newer")
    db.execute("UPDATE postrider.event SET accepted_at = now() - interval '61 minutes'"
               " WHERE event_id = 'newer'")
    look_again(db)
    hears(watcher, 2)


# -- to whom --

def test_a_tenant_is_told_of_its_own_and_the_operators_of_all(
        ingest, api, operators, watch, make_dispatch, make_endpoint, cli):
    cli.json("tenant", "create", "other")
    other = ingest.api(cli.json("key", "create", "--tenant", "other", "--role", "admin")["key"])
    ours, theirs, all_of_it = (watch(who) for who in (api, other, operators))
    gone = make_endpoint()
    gone.script(410)
    mine, yours = api.subscribe(gone.url)["id"], other.subscribe(gone.url)["id"]
    make_dispatch(**QUICK)
    api.event(1)
    other.event(1)
    kinds = ["postrider.delivery.dead", "postrider.subscription.disabled"]
    for endpoint, subjects in ((ours, [mine]), (theirs, [yours]), (all_of_it, [mine, yours])):
        events = hears(endpoint, 2 * len(subjects))
        assert sorted((event["data"]["subscription_id"], event["type"]) for event in events) \
            == sorted((subject, kind) for subject in subjects for kind in kinds)
    never(lambda: len(heard(ours)) + len(heard(theirs)) > 4, "of others")


def test_all_types_are_all_that_was_posted(api, watch, make_dispatch, endpoint, db):
    """Nor does a replay bring the others."""
    everything, watcher = watch(api, "*"), watch(api)
    endpoint.script(410)
    api.subscribe(endpoint.url)
    make_dispatch(**QUICK)
    api.event(1)
    hears(watcher, 2)
    assert [event["type"] for event in heard(everything)] == ["test.made"]
    job = api.post(f"/v1/subscriptions/{everything.made}/replay",
                   {"since": "2020-01-01T00:00:00Z"}).expect(202)["id"]
    until(lambda: db.value("SELECT state FROM postrider.replay_job WHERE id = %s", (job,))
          == "done", "the replay is done")
    until(lambda: len(everything.requests) >= 2, "it brings what was posted")
    assert {event["type"] for event in heard(everything)} == {"test.made"}


def test_nobody_posts_an_operational_event(api, watch, db):
    watcher = watch(api)
    event = {"type": "postrider.delivery.dead", "data": {}}
    for path, body in (("/v1/events", event), ("/v1/events", {**event, "type": "postrider.x"}),
                       ("/v1/events", {**event, "subscriptions": [watcher.made]})):
        problem = api.post(path, body).expect(422)
        assert problem["pointer"] == "/type" and "Postrider's own" in problem["detail"]
    refused = api.call("POST", "/v1/events/batch", json.dumps(event).encode(),
                       {"Content-Type": "application/x-ndjson"})
    assert refused.status == 422 and b"Postrider's own" in refused.body
    api.event(1, type="postriders.own")
    assert told(db) == 0


def test_what_happens_while_nobody_listens_is_never_told(api, watch, make_dispatch, db, endpoint):
    endpoint.script(410)
    api.subscribe(endpoint.url)
    make_dispatch(**QUICK)
    api.event(1)
    until(lambda: db.value("SELECT o.audit_number = h.number AND o.dead_id = d.delivery_id"
                           " FROM postrider.operation o, postrider.audit_head h,"
                           " postrider.dead_letter d"), "it is passed over")
    watcher = watch(api)
    never(lambda: watcher.requests, "what was before is told")
    assert told(db) == 0


# -- nothing goes round --

def test_what_becomes_of_telling_is_not_told(api, operators, watch, make_dispatch, endpoint, db):
    """Its deliveries die, its circuits open, its endpoints are gone."""
    fields = {"circuit_after": 1, "retry_base_ms": 1, "retry_cap_ms": 1}
    dying, failing, leaving = (watch(operators, **fields) for _ in range(3))
    for watcher, word in ((dying, 404), (failing, 500), (leaving, 410)):
        watcher.script(word)
    made = api.subscribe(endpoint.url)["id"]
    endpoint.script(410)
    make_dispatch(**QUICK, backlog_old="10ms")
    api.event(1)
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") >= 3
          and db.value("SELECT count(*) FROM postrider.audit WHERE actor = 'dispatch'") >= 4,
          "all goes wrong")
    seen = db.value("SELECT number FROM postrider.audit_head")
    look_again(db)
    until(lambda: db.value("SELECT audit_number FROM postrider.operation") >= seen
          and db.value("SELECT backlog_at > now() FROM postrider.operation"), "all is looked at")
    look_again(db)
    never(lambda: db.value("SELECT count(*) FROM postrider.event, jsonb_path_query(convert_from("
                           "body, 'UTF8')::jsonb, '$.data.subscription_id') s WHERE starts_with("
                           "type, 'postrider.') AND s <> to_jsonb(%s::text)", (made,)),
          "something about those who are told")
    assert told(db) >= 2


def test_a_dead_letter_of_telling_is_not_told_even_when_it_listens_no_more(step, queue, db):
    event = queue.accept_for_nobody("x", type="postrider.delivery.dead")
    delivery = db.value("INSERT INTO postrider.delivery (id, event_no, subscription_id, state)"
                        " VALUES (nextval('postrider.position'), %s, %s, 'dead') RETURNING id",
                        (event, queue.id))
    db.execute("INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)"
               " VALUES (%s, %s, 'x')", (delivery, queue.id))
    before = told(db)
    assert step() == 1 and told(db) == before


# -- each once --

def test_three_dispatchers_tell_each_once(api, operators, watch, make_dispatch, make_endpoint, db):
    watcher = watch(operators, "postrider.subscription.disabled")
    gone = make_endpoint()
    gone.script(410)
    made = {api.subscribe(gone.url, ordering="none")["id"] for _ in range(40)}
    for _ in range(3):
        make_dispatch(poll="10ms")
    api.event(1)
    events = hears(watcher, 40)
    assert {event["data"]["subscription_id"] for event in events} == made
    never(lambda: len(heard(watcher)) > 40 or told(db) > 40, "one twice")


def test_a_step_that_fails_is_taken_again_and_another_does_not_wait(step, queue, db, other):
    queue.die("x")
    tell(other)
    step()
    assert told(db) == 0, "another holds it"
    other.rollback()
    step()
    [(_, data)] = bodies(db)
    assert data["count"] == 1
    step()
    assert told(db) == 1


def test_a_death_that_is_committed_late_is_told_too(step, queue, db, cluster, other):
    first, second = queue.accept("first", "a"), queue.accept("second", "b")
    leases = {event: (lane, token) for lane, token, event in queue.claim()}
    record(other, *leases["first"], "dead", hands_back=False)
    queue.transaction(lambda connection: record(connection, *leases["second"], "dead",
                                                hands_back=False))
    step()
    assert told(db) == 0, "an older one is on its way"
    other.commit()
    step()
    [(kind, data)] = bodies(db)
    assert (kind, data["count"]) == ("postrider.delivery.dead", 2)
    assert {first, second} == {row[0] for row in db.rows(
        "SELECT delivery_id FROM postrider.dead_letter")}


def test_a_transaction_that_does_not_end_holds_up_no_telling_for_long(step, queue, db, other):
    other.execute("SELECT pg_current_xact_id()")
    queue.die("x")
    step()
    assert told(db) == 0
    db.execute("UPDATE postrider.dead_letter SET died_at = now() - interval '61 seconds'")
    step()
    assert told(db) == 1


def test_more_than_a_step_comes_to_is_told_in_steps(step, queue, db):
    db.execute("WITH e AS (INSERT INTO postrider.event (tenant_id, fan_out, event_id, type,"
               " fingerprint, body) SELECT %s, 1, 'e' || g, 't', '\\x00', '{}'"
               " FROM generate_series(1, 2500) g RETURNING event_no), d AS (INSERT INTO"
               " postrider.delivery (id, event_no, subscription_id, state) SELECT"
               " nextval('postrider.position'), event_no, %s, 'dead' FROM e RETURNING id)"
               " INSERT INTO postrider.dead_letter (delivery_id, subscription_id, reason)"
               " SELECT id, %s, 'x' FROM d", (queue.tenant, queue.id, queue.id))
    assert [step() for _ in range(4)] == [1000, 1000, 500, 0]
    assert [data["count"] for _, data in bodies(db)] == [1000, 1000, 500]


def test_deaths_of_a_minute_are_one_event(step, queue, db):
    queue.die("first")
    step()
    queue.die("second", "third")
    step()
    assert [data["count"] for _, data in bodies(db)] == [1]
    db.execute("UPDATE postrider.operation SET dead_at = dead_at - interval '61 seconds'")
    step()
    assert [data["count"] for _, data in bodies(db)] == [1, 2]
    step()
    assert told(db) == 2


def test_a_filter_judges_what_is_told(step, queue, db):
    db.execute("UPDATE postrider.subscription SET filter = '$.data.count > 1', filter_weight = 1"
               " WHERE id = (SELECT subscription_id FROM postrider.subscription_pattern"
               " WHERE pattern = 'postrider.*')")
    queue.die("first")
    step()
    look_again(db)
    queue.die("second", "third")
    step()
    assert [data["count"] for _, data in bodies(db)] == [2]


def test_an_id_that_somebody_took_is_passed_over(step, queue, db):
    number = db.value("SELECT number FROM postrider.audit_head") + 1
    queue.accept_for_nobody(f"postrider:audit:{number}")
    for reason in ("one", "two"):
        db.execute("INSERT INTO postrider.audit (actor, tenant_id, action, subject, detail)"
                   " VALUES ('cli', %s, 'subscription.disabled', %s, %s)",
                   (queue.tenant, str(queue.id),
                    json.dumps({"after": {"state_reason": reason}})))
    assert step() == 2
    assert [data["reason"] for _, data in bodies(db)] == ["two"]


def test_telling_wakes_who_is_told(step, queue, db):
    queue.die("x")
    assert db.value("SELECT count(*) FROM postrider.turn WHERE rest IS NULL") <= 1
    step()
    assert db.rows("SELECT l.subscription_id, t.rest FROM postrider.lane l JOIN postrider.turn t"
                   " USING (subscription_id)") == [(queue.id + 1, None)]
    with db.connection.transaction():
        [(_, _, event)] = queue.claim()
    assert event.startswith("postrider:dead:")


def test_a_backlog_that_nobody_is_told_of_is_told_when_somebody_listens(queue, step, db):
    db.execute("UPDATE postrider.subscription_pattern SET pattern = 'postrider.delivery.dead'")
    queue.accept("old")
    db.execute("UPDATE postrider.event SET accepted_at = now() - interval '2 hours'")
    step(old=HOUR)
    assert told(db) == 0 and db.value("SELECT count(*) FROM postrider.operation_backlog") == 0
    db.execute("UPDATE postrider.subscription_pattern SET pattern = 'postrider.backlog.*'")
    look_again(db)
    step(old=HOUR)
    assert [kind for kind, _ in bodies(db)] == ["postrider.backlog.old"]
    look_again(db)
    step(old=0)
    assert db.value("SELECT count(*) FROM postrider.operation_backlog") == 1


def test_an_old_backlog_is_not_over_before_it_is_half_as_old(queue, step, db):
    queue.accept("old")

    def look(minutes):
        db.execute("UPDATE postrider.event SET accepted_at = now() - %s * interval '1 minute'"
                   " WHERE event_id = 'old'", (minutes,))
        look_again(db)
        step(old=HOUR)
        return told(db)

    assert [look(minutes) for minutes in (59, 61, 31, 61, 29, 61)] == [0, 1, 1, 1, 1, 2]
