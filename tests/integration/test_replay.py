"""Replay over HTTP and with the operator's command, as a subscriber sees it."""

import datetime
import json
import signal
import threading
import time

import pytest

from .wait import never, until

FAST = {"retry_base_ms": 10, "retry_cap_ms": 20}


class Gate:
    """An endpoint's behaviour: answer `status`, once it is open."""

    def __init__(self, status=200):
        self.status = status
        self.open = threading.Event()

    def __call__(self, handler, _):
        self.open.wait(20)
        handler.send_response(self.status)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def seen(endpoint):
    return [request.headers["webhook-id"] for request in endpoint.requests]


def delivery(db, event):
    return db.value("SELECT id FROM postrider.deliveries WHERE event_id = %s", (event,))


def state(db, event):
    return db.rows("SELECT state, generation FROM postrider.deliveries WHERE event_id = %s",
                   (event,))[0]


def kill(api, db, endpoint, *events, asset="a"):
    """Events that die, one after the other."""
    endpoint.script(400)
    for event in events:
        api.event({}, id=event, asset=asset)
        until(lambda event=event: state(db, event)[0] == "dead", f"{event} is dead")
    endpoint.requests.clear()


def rfc3339(ago=0):
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)
    return at.isoformat()


@pytest.fixture
def made(api, endpoint, dispatch):
    """A subscription of the endpoint's."""
    return api.subscribe(endpoint.url, **FAST)["id"]


def act(api, made, db, event, verb="retry"):
    return api.post(f"/v1/subscriptions/{made}/deliveries/{delivery(db, event)}/{verb}")


def finish(api, made, started, seconds=20):
    """The job that `started` began, once it is over."""
    path = f"/v1/subscriptions/{made}/replays/{started['id']}"
    until(lambda: api.get(path).expect(200)["state"] != "running", "the replay is over",
          seconds=seconds)
    return api.get(path).expect(200)


# -- one dead letter --

def test_a_dead_letter_is_sent_again_under_a_new_generation(api, made, db, endpoint):
    kill(api, db, endpoint, "one")
    endpoint.script(200)
    answer = act(api, made, db, "one").expect(202)
    assert answer == {"id": str(delivery(db, "one")), "state": "pending", "generation": 2,
                      "held_by": None}
    until(lambda: state(db, "one") == ("delivered", 2), "it is delivered")
    assert seen(endpoint) == ["one"]
    assert endpoint.requests[0].headers["postrider-attempt"] == "1"
    assert db.rows("SELECT generation, attempt, status FROM postrider.attempt"
                   " ORDER BY generation") == [(1, 1, 400), (2, 1, 200)], "the history stays"


def test_it_goes_next_when_the_request_that_is_under_way_is_over(api, made, db, endpoint):
    kill(api, db, endpoint, "one")
    gate = Gate()
    endpoint.script(gate, 200)
    api.event({}, id="two", asset="a")
    api.event({}, id="three", asset="a")
    until(lambda: endpoint.requests, "two is under way")
    act(api, made, db, "one").expect(202)
    gate.open.set()
    until(lambda: len(endpoint.requests) == 3, "all arrive")
    assert seen(endpoint) == ["two", "one", "three"]


def test_it_goes_before_a_delivery_that_waits_for_its_retry(api, db, endpoint, dispatch):
    made = api.subscribe(endpoint.url, retry_base_ms=60000)["id"]
    kill(api, db, endpoint, "one")
    endpoint.script(503, 200)
    api.event({}, id="two", asset="a")
    until(lambda: db.value("SELECT due_at > now() FROM postrider.lane"), "two waits")
    act(api, made, db, "one").expect(202)
    until(lambda: state(db, "one")[0] == "delivered", "one goes at once")
    never(lambda: len(endpoint.requests) > 2, "two before its time", 0.3)
    db.execute("UPDATE postrider.lane SET due_at = now()")
    db.execute("UPDATE postrider.turn SET rest = NULL, entered_at = now(), wake_at = NULL")
    db.execute("NOTIFY postrider_work")
    until(lambda: len(endpoint.requests) == 3, "two goes on")
    assert seen(endpoint) == ["two", "one", "two"]
    assert endpoint.requests[2].headers["postrider-attempt"] == "2"


def test_a_held_lane_goes_on_with_its_dead_letter_or_without(api, db, endpoint, dispatch):
    made = api.subscribe(endpoint.url, on_dead="hold", **FAST)["id"]
    for verb, event, wanted in (("retry", "one", ["one", "one-after"]),
                                ("discard", "two", ["two-after"])):
        kill(api, db, endpoint, event)
        endpoint.script(200)
        api.event({}, id=f"{event}-after", asset="a")
        never(lambda: endpoint.requests, "something passes the dead letter", 0.3)
        act(api, made, db, event, verb).expect(202 if verb == "retry" else 200)
        until(lambda event=event: state(db, f"{event}-after")[0] == "delivered", "it goes on")
        assert seen(endpoint) == wanted
        endpoint.requests.clear()
    assert state(db, "two") == ("cancelled", 1)


def test_what_is_no_dead_letter_of_the_subscription_is_refused(
        api, made, db, endpoint, cli, ingest):
    kill(api, db, endpoint, "one")
    endpoint.script(200)
    api.event({}, id="two", asset="a")
    until(lambda: state(db, "two")[0] == "delivered", "two is delivered")
    other = api.subscribe(endpoint.url, event_types=["none"])["id"]
    cli.json("tenant", "create", "rival")
    rival = ingest.api(cli.json("key", "create", "--tenant", "rival", "--role", "admin")["key"])
    for verb in ("retry", "discard"):
        assert "is delivered" in act(api, made, db, "two", verb).expect(409)["detail"]
        act(api, other, db, "one", verb).expect(404)
        act(rival, made, db, "one", verb).expect(404)
        for id in ("0", "-1", "x", "99999999999999999999", "999"):
            api.post(f"/v1/subscriptions/{made}/deliveries/{id}/{verb}").expect(404)
    assert state(db, "one") == ("dead", 1)


def test_a_purged_one_is_refused_and_told_what_to_do(api, made, db, endpoint):
    kill(api, db, endpoint, "one")
    db.execute("UPDATE postrider.event SET body = NULL")
    answer = act(api, made, db, "one").expect(409)
    assert "purged" in answer["detail"] and "discard" in answer["detail"]
    assert act(api, made, db, "one", "discard").expect(200)["state"] == "cancelled"


def test_of_twenty_retries_at_once_one_is_taken(api, made, db, endpoint):
    kill(api, db, endpoint, "one")
    endpoint.script(200)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(act(api, made, db, "one").status))
               for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [202] + [409] * 19
    until(lambda: state(db, "one") == ("delivered", 2), "it is delivered")
    assert seen(endpoint) == ["one"]


# -- in the background --

def test_all_dead_letters_are_sent_again_in_order(api, made, db, endpoint):
    events = [f"e{n}" for n in range(15)]
    kill(api, db, endpoint, *events)
    endpoint.script(200)
    answer = api.post(f"/v1/subscriptions/{made}/retry-dead", {})
    started = answer.expect(202)
    assert answer.headers["Location"] == f"/v1/subscriptions/{made}/replays/{started['id']}"
    assert (started["what"], started["state"], started["rate_per_second"]) == (
        "dead", "running", 100)
    done = finish(api, made, started)
    assert (done["examined"], done["replayed"], done["refused"]) == (15, 15, 0)
    until(lambda: len(endpoint.requests) == 15, "all arrive")
    assert seen(endpoint) == events
    assert api.get(f"/v1/subscriptions/{made}/replays").expect(200) == {"replays": [done]}


def test_what_came_while_it_was_disabled_is_sent_before_what_waits(api, made, db, endpoint):
    since = rfc3339()
    api.post(f"/v1/subscriptions/{made}/disable").expect(200)
    for n in range(3):
        api.event({"n": n}, id=f"missed-{n}", asset="a")
    api.post(f"/v1/subscriptions/{made}/enable").expect(200)
    api.post(f"/v1/subscriptions/{made}/pause").expect(200)
    api.event({}, id="waits", asset="a")
    started = api.post(f"/v1/subscriptions/{made}/replay", {"since": since}).expect(202)
    done = finish(api, made, started)
    assert (done["examined"], done["replayed"]) == (4, 3)
    api.post(f"/v1/subscriptions/{made}/resume").expect(200)
    until(lambda: len(endpoint.requests) == 4, "all arrive")
    assert seen(endpoint) == ["missed-0", "missed-1", "missed-2", "waits"]
    positions = [int(request.headers["postrider-position"]) for request in endpoint.requests]
    assert positions == sorted(positions)
    assert json.loads(endpoint.requests[1].body)["data"] == {"n": 1}


def test_what_names_its_subscriptions_goes_to_no_other(api, made, db, endpoint):
    since = rfc3339()
    named = api.subscribe(endpoint.url, event_types=["none"])["id"]
    for id in (made, named):
        api.post(f"/v1/subscriptions/{id}/disable").expect(200)
    api.event({}, id="for-named", subscriptions=[named])
    for id in (made, named):
        api.post(f"/v1/subscriptions/{id}/enable").expect(200)
    replayed = [finish(api, id, api.post(f"/v1/subscriptions/{id}/replay",
                                         {"since": since}).expect(202))["replayed"]
                for id in (made, named)]
    assert replayed == [0, 1]
    until(lambda: state(db, "for-named")[0] == "delivered", "it arrives")


def test_a_replay_survives_dispatchers_that_die(
        api, db, endpoint, make_dispatch, make_ingest):
    """However often: each dead letter is replayed exactly once by each replay."""
    made = api.subscribe(endpoint.url, ordering="none", **FAST)["id"]
    workers = [make_dispatch(lease_margin="1s", poll="100ms") for _ in range(2)]
    endpoint.script(400)
    for n in range(60):
        api.event({}, id=f"e{n}")
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") == 60, "all died",
          seconds=30)
    endpoint.script(200)
    started = api.post(f"/v1/subscriptions/{made}/retry-dead",
                       {"rate_per_second": 40}).expect(202)
    path = f"/v1/subscriptions/{made}/replays/{started['id']}"
    for n, worker in enumerate(workers * 2):
        until(lambda n=n: api.get(path).expect(200)["replayed"] > 12 * n, "it goes on",
              seconds=30)
        worker.kill(signal.SIGKILL)
        worker.start()
    done = finish(api, made, started, seconds=30)
    assert (done["examined"], done["replayed"]) == (60, 60)
    until(lambda: db.rows("SELECT DISTINCT state, generation FROM postrider.delivery") ==
          [("delivered", 2)], "each is delivered", seconds=30)


def test_no_more_are_replayed_than_the_rate_allows(api, db, endpoint, make_dispatch):
    made = api.subscribe(endpoint.url, ordering="none", **FAST)["id"]
    for _ in range(2):
        make_dispatch(poll="100ms")
    endpoint.script(400)
    for n in range(50):
        api.event({}, id=f"e{n}")
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") == 50, "all died",
          seconds=30)
    endpoint.script(200)
    began = time.monotonic()
    started = api.post(f"/v1/subscriptions/{made}/retry-dead",
                       {"rate_per_second": 25}).expect(202)
    finish(api, made, started)
    # The first step is free, and 100 ms may be caught up with.
    assert time.monotonic() - began >= (50 - 3) / 25 - 0.2


def test_a_replay_is_cancelled(api, made, db, endpoint):
    kill(api, db, endpoint, "one", "two", "three", "four")
    started = api.post(f"/v1/subscriptions/{made}/retry-dead",
                       {"rate_per_second": 1}).expect(202)
    path = f"/v1/subscriptions/{made}/replays/{started['id']}"
    until(lambda: api.get(path).expect(200)["replayed"] == 1, "one is replayed")
    assert api.delete(path).expect(200)["state"] == "cancelled"
    assert api.delete(path).expect(200)["replayed"] <= 2, "it stays as it is"


@pytest.mark.parametrize("form, pointer", [
    ({"since": "yesterday"}, "/since"),
    ({"since": "2026-01-31"}, "/since"),
    ({"since": "2026-01-31T12:00:00"}, "/since"),
    ({"since": 1767225600}, "/since"),
    ({"since": None}, "/since"),
    ({"since": "2026-01-31T12:00:00Z", "until": "2026-01-31T13:00:00+01:00"}, "/until"),
    ({"rate_per_second": 0}, "/rate_per_second"),
    ({"rate_per_second": 10001}, "/rate_per_second"),
    ({"rate_per_second": 1.5}, "/rate_per_second"),
    ({"rate_per_second": "5"}, "/rate_per_second"),
])
def test_a_form_that_cannot_be_meant_is_refused(api, db, form, pointer):
    made = api.subscribe("http://127.0.0.1:1/")["id"]
    for route in ("retry-dead", "replay"):
        answer = api.post(f"/v1/subscriptions/{made}/{route}",
                          {"since": "2026-01-01T00:00:00Z", **form}).expect(422)
        assert answer["pointer"] == pointer
    assert db.value("SELECT count(*) FROM postrider.replay_job") == 0


def test_what_is_no_form_or_nobodys_is_refused(api, ingest, cli, tenant):
    made = api.subscribe("http://127.0.0.1:1/")["id"]
    since = {"since": rfc3339(60)}
    assert api.post(f"/v1/subscriptions/{made}/replay", {}).expect(422)["pointer"] == "/since"
    for body in (b"[]", b"{", b"", b'{"since":"2026-01-01T00:00:00Z","what":1}'):
        api.post(f"/v1/subscriptions/{made}/replay", body).expect(400)
    for route in ("retry-dead", "replay"):
        api.post(f"/v1/subscriptions/999/{route}", since).expect(404)
        api.post(f"/v1/subscriptions/x/{route}", since).expect(404)
        publisher = ingest.api(cli.json("key", "create", "--tenant", tenant, "--role",
                                        "publisher")["key"])
        publisher.post(f"/v1/subscriptions/{made}/{route}", since).expect(403)
    api.get("/v1/subscriptions/999/replays").expect(404)
    api.get(f"/v1/subscriptions/{made}/replays/1").expect(404)
    api.delete(f"/v1/subscriptions/{made}/replays/1").expect(404)
    assert api.get(f"/v1/subscriptions/{made}/replays").expect(200) == {"replays": []}


# -- the operator's command --

def test_the_command_does_the_same(api, made, db, endpoint, cli):
    kill(api, db, endpoint, "one", "two", "three")
    endpoint.script(200)
    assert cli.json("retry", made, str(delivery(db, "one")))["generation"] == 2
    assert cli.json("discard", made, str(delivery(db, "two")))["state"] == "cancelled"
    started = cli.json("replay", "dead", made, "--rate", "50", "--since", rfc3339(60))
    assert (started["rate_per_second"], started["created_by"]) == (50, "cli")
    assert finish(api, made, started)["replayed"] == 1
    until(lambda: [state(db, event)[0] for event in ("one", "two", "three")] == [
        "delivered", "cancelled", "delivered"], "all is over")
    again = cli.json("replay", "events", made, "--since", rfc3339(60))
    assert finish(api, made, again)["replayed"] == 3
    assert [job["id"] for job in cli.json("replay", "list", made)] == [
        again["id"], started["id"]]
    assert cli.json("replay", "cancel", made, again["id"])["state"] == "done"
    until(lambda: [state(db, event) for event in ("one", "two", "three")] == [
        ("delivered", 3), ("delivered", 2), ("delivered", 3)], "they are sent again")
    assert seen(endpoint) == ["one", "three", "one", "two", "three"]


@pytest.mark.parametrize("words, status, said", [
    ("retry 1", 2, "DELIVERY is missing"),
    ("retry", 2, "SUBSCRIPTION DELIVERY is missing"),
    ("retry 1 2 3", 2, "3 is one operand too many"),
    ("retry 1 x", 2, "an id is a number"),
    ("replay events 1", 2, "--since TIME is missing"),
    ("replay events 1 --since yesterday", 2, "a time is written as"),
    ("replay dead 1 --rate 0", 2, "--rate is a number"),
    ("replay dead 1 --since 2026-01-02T00:00:00Z --until 2026-01-02T00:00:00Z", 2,
     "--until must be after --since"),
    ("replay dead 999", 1, "no such subscription"),
    ("replay list 999", 1, "no such subscription"),
    ("retry 999 1", 1, "no such delivery"),
    ("replay cancel 999 1", 1, "no such replay"),
])
def test_the_command_says_what_is_wrong(cli, words, status, said):
    done = cli.run(*words.split())
    assert done.returncode == status
    assert said in done.stderr
