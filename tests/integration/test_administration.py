"""Subscriptions are changed, paused, disabled and deleted over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from .api import Api
from .wait import until

MOVES = ("pause", "resume", "disable", "enable")


@pytest.fixture
def made(api, endpoint):
    """A subscription, as its POST answered."""
    return api.subscribe(endpoint.url)


@pytest.fixture
def path(made):
    return f"/v1/subscriptions/{made['id']}"


def problem(answer, status):
    body = answer.expect(status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert body["status"] == status and body["detail"]
    return body


def make_key(cli, tenant, role):
    who = [] if role == "operator" else ["--tenant", tenant]
    return cli.json("key", "create", "--role", role, *who)["key"]


def etag(api, path):
    answer = api.get(path)
    answer.expect(200)
    return answer.headers["ETag"]


def patterns(db):
    return [row[0] for row in db.rows(
        "SELECT pattern FROM postrider.subscription_pattern ORDER BY 1")]


def in_states(api, path):
    """Bring it into each state that a move can find, one after the other."""
    for state, moves in (("active", ()), ("paused", ("pause",)),
                         ("disabled", ("disable",))):
        api.post(path + "/enable")
        api.post(path + "/resume").expect(200)
        for move in moves:
            api.post(f"{path}/{move}").expect(200)
        yield state


# -- rate and circuit --

def test_a_rate_and_a_circuit_are_taken_and_shown(api, made, endpoint):
    assert (made["rate_per_second"], made["circuit_after"]) == (None, 20)
    for rate, circuit in ((0.001, 0), (0.5, 1), (10000, 10000), (None, 20), (33.25, 7)):
        given = {"rate_per_second": rate, "circuit_after": circuit}
        other = api.subscribe(endpoint.url, **given)
        assert {k: other[k] for k in given} == given
        shown = api.get(f"/v1/subscriptions/{other['id']}").expect(200)
        listed = api.get("/v1/subscriptions").expect(200)["subscriptions"][-1]
        assert {k: shown[k] for k in given} == given and listed == shown


WRONG_LIMITS = [
    ("rate_per_second", text) for text in (
        "0", "-1", "0.0009", "10000.1", "1e3", "1E2", "1e-2", "0.00100000000000001",
        '"1"', "true", "[]", "123456789012345678901234567890")
] + [
    ("circuit_after", text) for text in ("-1", "10001", "1.0", "null", '"3"', "1e1", "true")
]


def test_a_wrong_limit_is_refused_with_its_field(api, path, endpoint):
    tag = etag(api, path)
    for field, text in WRONG_LIMITS:
        new = f'{{"url":"{endpoint.url}","{field}":{text}}}'.encode()
        change = f'{{"{field}":{text}}}'.encode()
        for answer in (api.post("/v1/subscriptions", new), api.patch(path, change)):
            body = problem(answer, 422)
            assert body["pointer"] == f"/{field}", text
            assert body["detail"].startswith(f"{field}: must be")
    assert etag(api, path) == tag


def test_a_rate_that_is_no_json_is_no_number(api, path):
    for text in ("NaN", "Infinity", ".5", "1.", "01", "+1"):
        problem(api.patch(path, f'{{"rate_per_second": {text}}}'.encode()), 400)


# -- PATCH --

CHANGES = [
    {"url": "http://127.0.0.1:9/elsewhere"},
    {"event_types": ["a.b", "c.*", "a.b"]},
    {"ordering": "none"},
    {"on_dead": "hold"},
    {"older_signature": True},
    {"max_attempts": 2147483647},
    {"max_in_flight": 7},
    {"retry_base_ms": 1},
    {"retry_cap_ms": 86400000},
    {"retry_base_ms": 2, "retry_cap_ms": 3},
    {"timeout_ms": 100},
    {"rate_per_second": 0.25},
    {"rate_per_second": None},
    {"circuit_after": 0},
]


def test_a_change_changes_what_it_names_and_nothing_else(api, path):
    before = api.get(path).expect(200)
    for change in CHANGES:
        answer = api.patch(path, change)
        after = answer.expect(200)
        assert after == {**before, **change, "updated_at": after["updated_at"]}
        assert after["updated_at"] > before["updated_at"]
        assert api.get(path).expect(200) == after
        assert api.get(path).headers["ETag"] == answer.headers["ETag"]
        before = after


def test_a_change_to_what_it_is_already_is_none(api, made, path, db):
    tag = etag(api, path)
    shown = api.get(path).expect(200)
    fields = {k: v for k, v in shown.items()
              if k not in ("id", "state", "state_reason", "created_at", "updated_at",
                           "secret_headers", "public_keys", "tls_certificate")}
    for change in ({}, fields, {"rate_per_second": None}, {"secret_headers": None},
                   {"tls_certificate": None, "tls_key": None}):
        assert api.patch(path, change).expect(200) == shown
        assert api.patch(path, change).headers["ETag"] == tag
    assert db.value("SELECT count(*) FROM postrider.audit WHERE action ~ 'updated'") == 0


WRONG_CHANGES = [
    ({"url": "http://10.0.0.1/"}, 422, "/url"),
    ({"url": "https://user@example.com/"}, 422, "/url"),
    ({"url": "ftp://127.0.0.1/"}, 422, "/url"),
    ({"url": None}, 422, "/url"),
    ({"event_types": []}, 422, "/event_types"),
    ({"event_types": None}, 422, "/event_types"),
    ({"event_types": ["a.*.b"]}, 422, "/event_types"),
    ({"ordering": None}, 422, "/ordering"),
    ({"older_signature": None}, 422, "/older_signature"),
    ({"max_attempts": None}, 422, "/max_attempts"),
    ({"max_in_flight": 0}, 422, "/max_in_flight"),
    ({"retry_base_ms": 10, "retry_cap_ms": 9}, 422, "/retry_base_ms"),
    ({"timeout_ms": 99}, 422, "/timeout_ms"),
    ({"secret": "whsec_" + "QUJD" * 8}, 400, ""),
    ({"state": "paused"}, 400, ""),
    ({"id": "1"}, 400, ""),
    ({"max_attempts": 3, "Max_attempts": 4}, 400, ""),
    ([], 400, ""),
    (None, 400, ""),
]


def test_a_wrong_change_is_refused_with_its_field_and_changes_nothing(api, path, db):
    tag = etag(api, path)
    for change, status, pointer in WRONG_CHANGES:
        body = problem(api.patch(path, json.dumps(change).encode()), status)
        assert body["pointer"] == pointer, change
    problem(api.patch(path, b'{"max_attempts":3,"max_attempts":4}'), 422)
    problem(api.patch(path, b"{"), 400)
    problem(api.patch(path, b"x=1", headers={"Content-Type": "text/plain"}), 415)
    assert etag(api, path) == tag
    assert db.value("SELECT count(*) FROM postrider.audit WHERE action ~ 'updated'") == 0


def test_half_a_change_of_the_waits_has_to_fit_the_other_half(api, path):
    for change, pointer, says in (
            ({"retry_cap_ms": 4999}, "/retry_cap_ms", "which is 5000"),
            ({"retry_base_ms": 3600001}, "/retry_base_ms", "which is 3600000")):
        body = problem(api.patch(path, change), 422)
        assert body["pointer"] == pointer and says in body["detail"]
    api.patch(path, {"retry_cap_ms": 5000}).expect(200)
    api.patch(path, {"retry_base_ms": 4999}).expect(200)


def test_new_event_types_are_matched_from_the_next_event_on(api, path, db):
    assert api.event(1, type="a.b")["deliveries"] == 1
    api.patch(path, {"event_types": ["a.*", "x"]}).expect(200)
    assert patterns(db) == ["a.*", "x"]
    api.patch(path, {"event_types": ["x", "c.*", "x"]}).expect(200)
    assert patterns(db) == ["c.*", "x"]
    assert [api.event(1, type=name)["deliveries"] for name in ("a.b", "x", "c.d", "y")] == [
        0, 1, 1, 0]


def test_types_that_are_changed_at_once_are_those_of_the_last(
        api, path, db, make_ingest, admin_key, cluster):
    """Each sees what the other has put there, though it began before."""
    others = [api, make_ingest().api(admin_key)]
    with cluster.connect(db.name) as blocker, ThreadPoolExecutor(2) as pool:
        blocker.execute("BEGIN; SELECT FROM postrider.subscription FOR UPDATE")
        answers = [pool.submit(other.patch, path, {"event_types": [name]})
                   for other, name in zip(others, ("a", "b"))]
        until(lambda: db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type"
                               " = 'Lock' AND datname = current_database()") == 2,
              "both wait")
        blocker.execute("ROLLBACK")
        for answer in answers:
            answer.result().expect(200)
    assert patterns(db) == api.get(path).expect(200)["event_types"]


# -- ETag and If-Match --

def test_every_answer_that_shows_it_has_its_etag(api, endpoint):
    answer = api.post("/v1/subscriptions", {"url": endpoint.url})
    path = answer.headers["Location"]
    seen = [answer.headers["ETag"], etag(api, path)]
    assert seen[0] == seen[1]
    for change in (lambda: api.patch(path, {"max_attempts": 3}),
                   *(lambda move=move: api.post(f"{path}/{move}") for move in MOVES)):
        seen.append(change().headers["ETag"])
        assert etag(api, path) == seen[-1]
    assert len(set(seen)) == 6, "each change has one of its own"


def test_a_stale_if_match_is_refused(api, path):
    old = etag(api, path)
    api.patch(path, {"max_attempts": 3}).expect(200)
    new = etag(api, path)
    calls = [lambda tag: api.patch(path, {"max_attempts": 4}, headers={"If-Match": tag}),
             *(lambda tag, move=move: api.post(f"{path}/{move}", headers={"If-Match": tag})
               for move in MOVES),
             lambda tag: api.delete(path, headers={"If-Match": tag})]
    for call in calls:
        for stale in (old, f'{old}, "77"', f"W/{new}", '"x"', '""', '"99999999999999999999"'):
            assert "read it again" in problem(call(stale), 412)["detail"]
    assert etag(api, path) == new


def test_an_if_match_that_holds_is_taken(api, path):
    for match in (lambda tag: tag, lambda tag: f'"77", {tag} ,W/"1"', lambda tag: "*"):
        attempts = api.get(path).expect(200)["max_attempts"] + 1
        headers = {"If-Match": match(etag(api, path))}
        changed = api.patch(path, {"max_attempts": attempts}, headers=headers).expect(200)
        assert changed["max_attempts"] == attempts
    api.post(path + "/pause", headers={"If-Match": etag(api, path)}).expect(200)
    api.delete(path, headers={"If-Match": etag(api, path)}).expect(204)


def test_an_if_match_that_cannot_be_read_is_refused(api, path):
    tag = etag(api, path)
    for wrong in ("1", '"1', "", ",", '"1" "2"', '"1",', "W/1", "* ,", ", ".join(['"1"'] * 9)):
        assert "If-Match" in problem(
            api.patch(path, {"max_attempts": 3}, headers={"If-Match": wrong}), 400)["detail"]
    assert etag(api, path) == tag


def test_of_two_changes_of_one_version_one_wins(api, path, make_ingest, admin_key, db):
    others = [api, make_ingest().api(admin_key)]
    headers = {"If-Match": etag(api, path)}
    for attempts in range(3, 6):
        with ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(
                lambda other, n=attempts, h=headers: other.patch(
                    path, {"max_attempts": n * 10 + others.index(other)}, headers=h), others))
        assert sorted(answer.status for answer in answers) == [200, 412]
        won = next(answer for answer in answers if answer.status == 200)
        assert api.get(path).expect(200) == won.json
        headers = {"If-Match": won.headers["ETag"]}
    assert db.value("SELECT count(*) FROM postrider.audit WHERE action ~ 'updated'") == 3


# -- pause, resume, disable, enable, delete --

AFTER = {  # (move, state): the state after, None if it is refused
    ("pause", "active"): "paused", ("pause", "paused"): "paused", ("pause", "disabled"): None,
    ("resume", "active"): "active", ("resume", "paused"): "active",
    ("resume", "disabled"): None,
    ("disable", "active"): "disabled", ("disable", "paused"): "disabled",
    ("disable", "disabled"): "disabled",
    ("enable", "active"): "active", ("enable", "paused"): None, ("enable", "disabled"): "active",
}


def test_a_move_fits_the_state_or_is_refused(api, path, db):
    for move, state in ((move, state) for move in MOVES for state in in_states(api, path)):
        before, tag = api.get(path).expect(200), etag(api, path)
        audits = db.value("SELECT count(*) FROM postrider.audit")
        answer = api.post(f"{path}/{move}")
        after = AFTER[move, state]
        if after is None:
            says = {"paused": "resume it", "disabled": "enable it"}[state]
            assert says in problem(answer, 409)["detail"]
        else:
            assert answer.expect(200)["state"] == after
        if after in (None, state):
            assert api.get(path).expect(200) == before and etag(api, path) == tag
            assert db.value("SELECT count(*) FROM postrider.audit") == audits
        else:
            assert etag(api, path) != tag
            assert db.value("SELECT count(*) FROM postrider.audit") == audits + 1


def test_who_let_it_rest_is_said_until_it_goes_on(api, path, db):
    key = db.value("SELECT actor FROM postrider.audit WHERE action = 'subscription.created'")
    assert api.post(path + "/pause").expect(200)["state_reason"] == f"paused by {key}"
    assert api.post(path + "/disable").expect(200)["state_reason"] == f"disabled by {key}"
    assert api.post(path + "/enable").expect(200)["state_reason"] is None


def test_what_is_paused_or_disabled_can_be_changed_and_stays_so(api, path, db):
    for state in in_states(api, path):
        change = {"event_types": [state], "url": f"http://127.0.0.1:9/{state}",
                  "circuit_after": 0}
        assert api.patch(path, change).expect(200)["state"] == state
        assert patterns(db) == [state]
        if state != "active":
            assert db.value("SELECT rest FROM postrider.turn") == state


def test_a_deleted_subscription_is_gone_for_its_tenant(api, path, made, db):
    api.event(1, asset="a")
    answer = api.delete(path)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["Content-Type"] is None
    for again in (api.delete(path), api.get(path), api.patch(path, {"max_attempts": 3}),
                  *(api.post(f"{path}/{move}") for move in MOVES)):
        problem(again, 404)
    assert api.get("/v1/subscriptions").expect(200)["subscriptions"] == []
    assert api.event(1)["deliveries"] == 0
    problem(api.post("/v1/events", {"type": "t", "data": 1, "subscriptions": [made["id"]]}), 422)
    assert patterns(db) == []
    assert db.value("SELECT count(*) FROM postrider.subscription_secret") == 0
    assert db.rows("SELECT id, state FROM postrider.subscription") == [
        (int(made["id"]), "deleted")]
    assert db.rows("SELECT rest, wake_at <= now() FROM postrider.turn") == [("deleted", True)]


# -- who may, and what is kept of it --

def every_change(api, path):
    yield lambda: api.patch(path, {"max_attempts": 3})
    for move in MOVES:
        yield lambda move=move: api.post(f"{path}/{move}")
    yield lambda: api.delete(path)


def test_a_subscription_of_another_tenant_cannot_be_changed(api, cli, ingest, path):
    cli.json("tenant", "create", "other")
    stranger = Api(ingest.port, make_key(cli, "other", "admin"))
    tag = etag(api, path)
    for change in every_change(stranger, path):
        problem(change(), 404)
    problem(stranger.delete(path, headers={"If-Match": tag}), 404)
    for wrong in ("0", "99", "x", "-1", "99999999999999999999"):
        for change in every_change(api, f"/v1/subscriptions/{wrong}"):
            problem(change(), 404)
    assert etag(api, path) == tag


def test_only_an_admin_changes_a_subscription(api, cli, ingest, tenant, path):
    tag = etag(api, path)
    for role in ("publisher", "operator"):
        other = Api(ingest.port, make_key(cli, tenant, role))
        for change in every_change(other, path):
            problem(change(), 403)
    for change in every_change(Api(ingest.port), path):
        problem(change(), 401)
    assert etag(api, path) == tag


def test_every_change_is_audited_with_what_it_changed(api, path, made, db, endpoint):
    api.patch(path, {"max_attempts": 3, "on_dead": "skip", "rate_per_second": 0.5}).expect(200)
    for move in MOVES:
        api.post(f"{path}/{move}").expect(200)
    api.delete(path).expect(204)
    rows = db.rows("SELECT action, actor, detail FROM postrider.audit"
                   " WHERE subject = %s AND action ~ '^subscription' ORDER BY id", (made["id"],))
    assert [row[0].split(".")[1] for row in rows] == [
        "created", "updated", "paused", "resumed", "disabled", "enabled", "deleted"]
    assert {row[1] for row in rows} == {rows[0][1]} and rows[0][1].startswith("key:")
    assert rows[1][2] == {"before": {"max_attempts": 12, "rate_per_second": None},
                          "after": {"max_attempts": 3, "rate_per_second": 0.5}}
    assert [(row[2]["before"]["state"], row[2]["after"]["state"]) for row in rows[2:]] == [
        ("active", "paused"), ("paused", "active"), ("active", "disabled"),
        ("disabled", "active"), ("active", "deleted")]
    assert made["secret"] not in str(rows)


def test_what_can_be_done_with_it_is_in_allow(api, path):
    for method, where, allow in (("PUT", "", "GET, HEAD, PATCH, DELETE"), ("GET", "/pause", "POST"),
                                 ("DELETE", "/enable", "POST")):
        answer = api.call(method, path + where)
        problem(answer, 405)
        assert answer.headers["Allow"] == allow
    problem(api.post(path + "/fly"), 404)
    problem(api.post(path + "/pause/"), 404)
    problem(api.post("/v1/subscriptions//pause"), 404)
