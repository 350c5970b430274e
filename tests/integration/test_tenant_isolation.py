"""Who may do what: every route of the program, for every role and for another tenant.

What another tenant has is to behave exactly like what there is none of, in words and in
time.
"""

import re
import time
from math import inf
from pathlib import Path

import pytest

from .api import Api
from .wait import until

ROUTES_C = Path(__file__).parents[2] / "src/ingest/routes.c"
TABLE = re.search(r"routes\[\] = \{(.*?)\n\};", ROUTES_C.read_text(), re.DOTALL)[1]
ROUTES = re.findall(r'ROUTE\(\s*"([A-Z]+)",\s*"([^"]+)"', TABLE)

ROLES = ("publisher", "viewer", "admin", "operator")
ANYBODY = None
EVENTS = {"publisher", "admin"}
READS = {"viewer", "admin"}
ADMINS = {"admin"}
OPERATORS = {"operator"}

SUBSCRIPTION = "/v1/subscriptions/{id}"
WHO_MAY = {
    ("GET", "/console"): ANYBODY,
    ("GET", "/console/"): ANYBODY,
    ("GET", "/console/{id}"): ANYBODY,
    ("GET", "/healthz"): ANYBODY,
    ("GET", "/metrics"): ANYBODY,
    ("GET", "/openapi.json"): ANYBODY,
    ("GET", "/problems/{id}"): ANYBODY,
    ("GET", "/readyz"): ANYBODY,
    ("POST", "/v1/events"): EVENTS,
    ("POST", "/v1/events/batch"): EVENTS,
    ("GET", "/v1/events/{id}"): EVENTS | READS,
    ("GET", "/v1/events/{id}/payload"): ADMINS,
    ("GET", "/v1/subscriptions"): READS,
    ("POST", "/v1/subscriptions"): ADMINS,
    ("GET", SUBSCRIPTION): READS,
    ("PATCH", SUBSCRIPTION): ADMINS,
    ("DELETE", SUBSCRIPTION): ADMINS,
    ("POST", f"{SUBSCRIPTION}/pause"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/resume"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/disable"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/enable"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/rotate-secret"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/rotate-signing-key"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/test"): ADMINS,
    ("GET", f"{SUBSCRIPTION}/deliveries"): READS,
    ("GET", f"{SUBSCRIPTION}/deliveries/{{id}}"): READS,
    ("POST", f"{SUBSCRIPTION}/deliveries/{{id}}/retry"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/deliveries/{{id}}/discard"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/retry-dead"): ADMINS,
    ("POST", f"{SUBSCRIPTION}/replay"): ADMINS,
    ("GET", f"{SUBSCRIPTION}/replays"): READS,
    ("GET", f"{SUBSCRIPTION}/replays/{{id}}"): READS,
    ("DELETE", f"{SUBSCRIPTION}/replays/{{id}}"): ADMINS,
    ("GET", "/v1/assets/{asset}"): READS,
    ("GET", "/v1/dead-letters"): READS,
    ("GET", "/v1/state"): READS | OPERATORS,
    ("GET", "/v1/state/history"): READS | OPERATORS,
    ("GET", "/v1/audit"): OPERATORS,
    ("GET", "/v1/key"): set(ROLES),
    ("GET", "/v1/keys"): OPERATORS,
    ("POST", "/v1/keys"): OPERATORS,
    ("GET", "/v1/keys/{id}"): OPERATORS,
    ("POST", "/v1/keys/{id}/revoke"): OPERATORS,
    ("GET", "/v1/tenants"): OPERATORS,
    ("POST", "/v1/tenants"): OPERATORS,
    ("GET", "/v1/tenants/{id}"): OPERATORS,
}

# A body that is taken, where a route takes one.
BODIES = {
    ("POST", "/v1/events"): {"type": "t", "data": 1},
    ("POST", "/v1/events/batch"): b'{"type":"t","data":1}\n',
    ("POST", "/v1/subscriptions"): {"url": "http://127.0.0.1:9/"},
    ("PATCH", SUBSCRIPTION): {"max_attempts": 3},
    ("POST", f"{SUBSCRIPTION}/rotate-secret"): {},
    ("POST", f"{SUBSCRIPTION}/rotate-signing-key"): {},
    ("POST", f"{SUBSCRIPTION}/retry-dead"): {},
    ("POST", f"{SUBSCRIPTION}/replay"): {"since": "2026-01-01T00:00:00Z"},
    ("POST", "/v1/keys"): {"role": "operator"},
    ("POST", "/v1/tenants"): {"name": "another"},
}

OF_A_TENANT = [route for route in ROUTES if "{id}" in route[1] and WHO_MAY.get(route) and
               WHO_MAY[route] != OPERATORS]
NOWHERE = "7777777"


def call(api, route, *ids, **how):
    """The route with these ids in their order."""
    method, path = route
    for each in ids:
        path = path.replace("{id}", each, 1)
    headers = {"Content-Type": "application/x-ndjson"} if path.endswith("/batch") else {}
    path = path.replace("{id}", NOWHERE).replace("{asset}", "nothing")
    return api.call(method, path, BODIES.get(route), headers=headers)


def seen(answer):
    """All of an answer that does not differ from one moment to the next."""
    headers = [(name, value) for name, value in answer.headers.items() if name != "Date"]
    return answer.status, answer.body, headers


def make_key(cli, role, tenant):
    whose = [] if role == "operator" else ["--tenant", tenant]
    return cli.json("key", "create", "--role", role, *whose)["key"]


@pytest.fixture
def stranger(ingest, cli):
    """The admin of another tenant."""
    cli("tenant", "create", "other")
    return ingest.api(make_key(cli, "admin", "other"))


class Theirs:
    """What a tenant has, of each kind that a path can name."""

    def __init__(self, api, db, endpoint, dispatch):
        endpoint.script(404, 404, 404)
        self.subscription = api.subscribe(endpoint.url, ed25519_signature=True, on_dead="hold",
                                          secret_headers={"x-a": "1"})["id"]
        self.event = api.event({"n": 1}, id="theirs", asset="a")["id"]
        api.event({"n": 2}, asset="a")
        self.delivery = str(until(
            lambda: db.value("SELECT delivery_id FROM postrider.dead_letter"), "one is dead"))
        dispatch.stop()
        self.replay = api.post(f"/v1/subscriptions/{self.subscription}/replay",
                               {"since": "2099-01-01T00:00:00Z"}).expect(202)["id"]

    def ids(self, route):
        """Those that this route takes, in their order."""
        path = route[1]
        first = self.event if path.startswith("/v1/events") else self.subscription
        second = self.replay if "/replays/" in path else self.delivery
        return (first, second)[:path.count("{id}")]


@pytest.fixture
def theirs(api, db, endpoint, dispatch):
    return Theirs(api, db, endpoint, dispatch)


def everything(db, tenant):
    """All rows of a tenant, save for when its keys were used."""
    [tenant_id] = db.rows("SELECT id FROM postrider.tenant WHERE name = %s", (tenant,))
    found = []
    for table, of in (("subscription", "tenant_id = %s"), ("turn", "tenant_id = %s"),
                      ("event", "tenant_id = %s"), ("audit", "tenant_id = %s"),
                      *((name, "subscription_id IN (SELECT id FROM postrider.subscription"
                         " WHERE tenant_id = %s)") for name in (
                             "subscription_secret", "subscription_test", "lane", "delivery", "dead_letter",
                             "replay_job"))):
        found += db.rows(f"SELECT '{table}', xmin::text, t::text FROM postrider.{table} t"
                         f" WHERE {of} ORDER BY 3", tenant_id)
    return found


def test_each_route_of_the_program_is_in_this_test():
    assert len(ROUTES) == TABLE.count("ROUTE(")
    assert sorted(WHO_MAY) == sorted(ROUTES)


def test_each_role_may_do_what_is_its_own_and_nothing_else(ingest, cli, tenant):
    keys = {role: make_key(cli, role, tenant) for role in ROLES}
    for route in ROUTES:
        for role in ROLES:
            answer = call(ingest.api(keys[role]), route)
            if WHO_MAY[route] is ANYBODY or role in WHO_MAY[route]:
                assert answer.status not in (401, 403), (route, role, answer)
            else:
                assert answer.status == 403, (route, role, answer)
                assert "this takes" in answer.json["detail"]


def test_without_a_key_that_is_valid_nothing_opens(ingest, cli, tenant):
    made = cli.json("key", "create", "--role", "admin", "--tenant", tenant)
    cli("key", "revoke", made["id"])
    for route in ROUTES:
        for key in (None, "pr_" + "A" * 43, made["key"]):
            status = call(Api(ingest.port, key), route).status
            assert (status == 401) == (WHO_MAY[route] is not ANYBODY), (route, status)


def test_what_another_tenant_has_answers_like_what_is_not_there(stranger, theirs, api, db, tenant):
    own = stranger.subscribe("http://127.0.0.1:9/")["id"]
    before = everything(db, tenant)
    assert OF_A_TENANT
    for route in OF_A_TENANT:
        ids = theirs.ids(route)
        nowhere = call(stranger, route, *[NOWHERE for _ in ids])
        assert nowhere.status == 404
        assert seen(call(stranger, route, *ids)) == seen(nowhere), route
        if len(ids) == 2:  # one of them is one's own
            nowhere = call(stranger, route, own, NOWHERE)
            assert nowhere.status == 404
            assert seen(call(stranger, route, own, ids[1])) == seen(nowhere), route
    assert everything(db, tenant) == before
    assert stranger.get("/v1/subscriptions").expect(200)["subscriptions"][0]["id"] == own
    # They are there.
    for route in OF_A_TENANT:
        if route[0] == "GET":
            call(api, route, *theirs.ids(route)).expect(200)


def test_an_event_cannot_name_what_another_tenant_has(stranger, theirs, db, tenant):
    before = everything(db, tenant)
    answers = [stranger.post("/v1/events", {"type": "t", "data": 1, "subscriptions": [named]})
               for named in (theirs.subscription, NOWHERE)]
    texts = [answer.body.decode().replace(named, "?")
             for answer, named in zip(answers, (theirs.subscription, NOWHERE))]
    assert answers[0].status == answers[1].status == 422 and texts[0] == texts[1]
    # An id of one's own may be like another tenant's.
    assert stranger.event({"n": 3}, id=theirs.event)["deliveries"] == 0
    assert everything(db, tenant) == before


HELD = ("subscription", "subscription_secret", "turn", "lane", "delivery", "event",
        "dead_letter", "replay_job")


def test_nobody_waits_for_what_another_tenant_has(ingest, stranger, theirs, other):
    """Whoever waits for a row's lock tells that the row is there."""
    for table in HELD:
        other.execute(f"SELECT FROM postrider.{table} FOR UPDATE")
    hasty = Api(ingest.port, stranger.key, seconds=5)
    for route in OF_A_TENANT:
        ids = theirs.ids(route)
        assert call(hasty, route, *ids).status == 404, route
    assert hasty.post("/v1/events", {"type": "t", "data": 1,
                                     "subscriptions": [theirs.subscription]}).status == 422


def took(api, route, ids):
    start = time.perf_counter()
    assert call(api, route, *ids).status == 404
    return time.perf_counter() - start


def test_what_another_tenant_has_takes_no_longer_than_what_is_not_there(
        stranger, theirs, db):
    db.execute("INSERT INTO postrider.other_attempt (delivery_id, generation, attempt, ended,"
               " worker, excerpt) SELECT %s, 2, n, 'answered', 'w', repeat('x', 1000)"
               " FROM generate_series(1, 3000) n", (int(theirs.delivery),))
    db.execute("INSERT INTO postrider.delivery (id, event_no, subscription_id, state)"
               " SELECT 500000000 + n * 1000, 500000000 + n, %s, 'dead'"
               " FROM generate_series(1, 3000) n", (int(theirs.subscription),))
    db.execute("INSERT INTO postrider.replay_job (subscription_id, what, created_by, state)"
               " SELECT %s, 'dead', 'x', 'done' FROM generate_series(1, 3000)",
               (int(theirs.subscription),))
    for route in OF_A_TENANT:
        ids = theirs.ids(route)
        least = {True: inf, False: inf}
        for n in range(400):  # in turn, so that what else goes on is the same for both
            is_there = n % 2 == 0
            least[is_there] = min(least[is_there], took(  # noise only adds
                stranger, route, ids if is_there else (NOWHERE,) * 2))
            if n >= 40 and abs(least[True] - least[False]) < 0.5 * least[False] + 0.001:
                break
        else:
            pytest.fail(f"{route}: {least}")
