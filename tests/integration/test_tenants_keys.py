"""Operators look after tenants and keys, over HTTP as with the command."""

import re
from datetime import datetime, timedelta, timezone

import pytest

from .api import Api
from .statement import statement
from .wait import never, until

TENANT_ROLES = ("publisher", "viewer", "admin")
FIELDS = {"id", "tenant", "role", "name", "created_at", "expires_at", "revoked_at",
          "last_used_at"}


@pytest.fixture
def operator(ingest, cli):
    return ingest.api(cli.json("key", "create", "--role", "operator")["key"])


def problem(answer, status):
    body = answer.expect(status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    return body


def later(**how):
    return (datetime.now(timezone.utc) + timedelta(**how)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def keys(api, query=""):
    return api.get(f"/v1/keys{query}").expect(200)["keys"]


# -- tenants --

def test_a_tenant_is_made_shown_and_listed(operator, cli):
    answer = operator.post("/v1/tenants", {"name": "acme"})
    made = answer.expect(201)
    assert set(made) == {"id", "name", "created_at"} and made["name"] == "acme"
    assert operator.get(answer.headers["Location"]).expect(200) == made
    assert operator.get("/v1/tenants").expect(200) == {"tenants": [made], "next_after": None}
    assert [(t["id"], t["name"]) for t in cli.json("tenant", "list")] == [(made["id"], "acme")]
    for wrong in ("0", "77", "x", "-1", "99999999999999999999"):
        problem(operator.get(f"/v1/tenants/{wrong}"), 404)


def test_there_is_one_tenant_of_a_name(operator, cli, db):
    cli("tenant", "create", "acme")
    problem(operator.post("/v1/tenants", {"name": "acme"}), 409)
    assert db.value("SELECT count(*) FROM postrider.tenant") == 1
    assert db.value("SELECT count(*) FROM postrider.audit WHERE action = 'tenant.created'") == 1


@pytest.mark.parametrize("body, status, pointer", [
    (b'{"name":""}', 422, "/name"), (b'{"name":"a b"}', 422, "/name"),
    (b'{"name":"a\\u0000"}', 422, "/name"), (b'{"name":7}', 422, "/name"),
    (b'{"name":null}', 422, "/name"), (b'{"name":"a","name":"b"}', 422, "/name"),
    (b"{}", 422, "/name"), (b'{"name":"a","x":1}', 400, ""), (b'{"role":"admin"}', 400, ""),
    (b'["a"]', 400, ""), (b"{", 400, "")])
def test_a_wrong_tenant_is_refused_with_its_field(operator, db, body, status, pointer):
    assert problem(operator.post("/v1/tenants", body), status)["pointer"] == pointer
    assert db.value("SELECT count(*) FROM postrider.tenant") == 0


# -- keys --

def test_a_key_of_each_role_is_shown_once_and_kept_as_a_hash(operator, cli, tenant, db):
    for role in (*TENANT_ROLES, "operator"):
        whose = {} if role == "operator" else {"tenant": tenant}
        answer = operator.post("/v1/keys", {"role": role, "name": f"my {role}", **whose})
        made = answer.expect(201)
        assert re.fullmatch(r"pr_[A-Za-z0-9_-]{43}", made["key"])
        assert answer.headers["Cache-Control"] == "no-store"
        shown = operator.get(answer.headers["Location"]).expect(200)
        assert set(shown) == FIELDS and shown == {k: made[k] for k in FIELDS}
        assert (shown["role"], shown["name"], shown["tenant"]) == (
            role, f"my {role}", whose.get("tenant"))
        assert db.value("SELECT hash = sha256(%s::text::bytea) FROM postrider.api_key"
                        " WHERE id = %s", (made["key"], int(made["id"])))
        seen = operator.get("/v1/keys").body.decode() + cli("key", "list", "--json") + str(
            db.rows("SELECT * FROM postrider.audit"))
        assert made["key"] not in seen
        assert made["key"][3:] not in seen


def test_both_ways_to_look_after_keys_say_the_same(operator, cli, tenant):
    expires = later(days=1)
    operator.post("/v1/keys", {"role": "viewer", "tenant": tenant,
                               "expires_at": expires}).expect(201)
    cli("key", "create", "--role", "viewer", "--tenant", tenant, "--expires", expires)
    one, two = keys(operator, f"?tenant={tenant}")
    assert {k: one[k] for k in FIELDS - {"id", "created_at"}} == {
        k: two[k] for k in FIELDS - {"id", "created_at"}}
    assert one["expires_at"] == expires
    listed = cli.json("key", "list", "--tenant", tenant)
    assert [set(row) for row in listed] == [FIELDS, FIELDS]
    assert [row["id"] for row in listed] == [one["id"], two["id"]]


WRONG_KEYS = [
    ({}, 422, "/role"),
    ({"role": "king"}, 422, "/role"),
    ({"role": None}, 422, "/role"),
    ({"role": "admin"}, 422, "/tenant"),
    ({"role": "viewer", "tenant": None}, 422, "/tenant"),
    ({"role": "operator", "tenant": "acme"}, 422, "/tenant"),
    ({"role": "admin", "tenant": "nobody"}, 422, "/tenant"),
    ({"role": "admin", "tenant": "a b"}, 422, "/tenant"),
    ({"role": "admin", "tenant": ""}, 422, "/tenant"),
    ({"role": "admin", "tenant": "acme", "name": ""}, 422, "/name"),
    ({"role": "admin", "tenant": "acme", "name": "ä" * 101}, 422, "/name"),
    ({"role": "admin", "tenant": "acme", "name": "a\0b"}, 422, "/name"),
    ({"role": "admin", "tenant": "acme", "name": None}, 422, "/name"),
    ({"role": "admin", "tenant": "acme", "expires_at": "tomorrow"}, 422, "/expires_at"),
    ({"role": "admin", "tenant": "acme", "expires_at": 7}, 422, "/expires_at"),
    ({"role": "admin", "tenant": "acme", "expires_at": "2001-01-01T00:00:00Z"}, 422,
     "/expires_at"),
    ({"role": "admin", "tenant": "acme", "hash": "x"}, 400, ""),
    ({"role": "admin", "tenant": "acme", "key": "x"}, 400, ""),
    ([], 400, ""),
]


def test_a_wrong_key_is_refused_with_its_field_and_is_not_made(operator, tenant, db):
    for body, status, pointer in WRONG_KEYS:
        assert problem(operator.post("/v1/keys", body), status)["pointer"] == pointer, body
    assert db.value("SELECT count(*) FROM postrider.api_key") == 1
    assert db.value("SELECT count(*) FROM postrider.audit WHERE action = 'key.created'") == 1


def test_a_key_opens_until_it_is_revoked(operator, ingest, tenant):
    made = operator.post("/v1/keys", {"role": "admin", "tenant": tenant}).expect(201)
    api = ingest.api(made["key"])
    api.get("/v1/subscriptions").expect(200)
    api.event(1)
    revoked = operator.post(f"/v1/keys/{made['id']}/revoke").expect(200)
    assert revoked["revoked_at"]
    api.get("/v1/subscriptions").expect(401)
    api.post("/v1/events", {"type": "t", "data": 1}).expect(401)
    again = operator.post(f"/v1/keys/{made['id']}/revoke").expect(200)
    assert again["revoked_at"] == revoked["revoked_at"]
    for wrong in ("0", "77", "x", "-1", "99999999999999999999"):
        problem(operator.post(f"/v1/keys/{wrong}/revoke"), 404)
        problem(operator.get(f"/v1/keys/{wrong}"), 404)


def test_a_key_that_expires_opens_no_longer(operator, ingest, tenant, db):
    made = operator.post("/v1/keys", {"role": "admin", "tenant": tenant,
                                      "expires_at": later(hours=1)}).expect(201)
    api = ingest.api(made["key"])
    api.get("/v1/subscriptions").expect(200)
    api.event(1)
    db.execute("UPDATE postrider.api_key SET expires_at = now() WHERE id = %s",
               (int(made["id"]),))
    api.get("/v1/subscriptions").expect(401)
    api.post("/v1/events", {"type": "t", "data": 1}).expect(401)


def test_an_operator_that_revokes_its_own_key_is_out(operator):
    own, = keys(operator)
    assert operator.post(f"/v1/keys/{own['id']}/revoke").expect(200)["revoked_at"]
    operator.get("/v1/keys").expect(401)


def test_a_viewer_reads_and_changes_nothing(operator, ingest, api, tenant, endpoint):
    made = api.subscribe(endpoint.url)
    path = f"/v1/subscriptions/{made['id']}"
    event = api.event(1)["id"]
    viewer = ingest.api(operator.post(
        "/v1/keys", {"role": "viewer", "tenant": tenant}).expect(201)["key"])
    assert viewer.get(path).expect(200) == api.get(path).expect(200)
    assert viewer.get(f"/v1/events/{event}").expect(200)
    for answer in (viewer.post("/v1/events", {"type": "t", "data": 1}),
                   viewer.patch(path, {"max_attempts": 3}), viewer.delete(path),
                   viewer.post(f"{path}/pause")):
        assert "a viewer's key reads" in problem(answer, 403)["detail"]


# -- pages --

def test_pages_are_whole_and_end(operator, cli, tenant, db):
    db.execute("INSERT INTO postrider.tenant (name) SELECT 'n' || n FROM generate_series(1, 450) n")
    db.execute("INSERT INTO postrider.api_key (tenant_id, role, name, hash)"
               " SELECT id, 'admin', name, sha256(name::bytea) FROM postrider.tenant")
    for path, name, n in (("/v1/tenants", "tenants", 451), ("/v1/keys", "keys", 452)):
        seen, after = [], 0
        while after is not None:
            page = operator.get(f"{path}?after={after}&limit=200").expect(200)
            assert len(page[name]) <= 200
            seen += [row["id"] for row in page[name]]
            after = page["next_after"]
        assert len(seen) == len(set(seen)) == n and seen == sorted(seen, key=int)
        assert len(operator.get(path).expect(200)[name]) == 100
        assert len(cli.json(name[:-1], "list")) == n
    assert [key["tenant"] for key in keys(operator, "?tenant=n7&limit=1")] == ["n7"]
    assert keys(operator, "?tenant=nobody") == []


@pytest.mark.parametrize("query", [
    "limit=0", "limit=201", "limit=x", "limit=", "limit", "after=-1", "after=x", "x=1", "",
    "after=1&after=2", "after=99999999999999999999", "limit=2000000000", "tenant=%00",
    "tenant=%zz", "tenant=a%20b", "tenant=" + "a" * 300, "limit=1%00"])
def test_a_query_that_is_none_is_refused(operator, query):
    for path in ("/v1/keys", "/v1/tenants", "/v1/audit"):
        answer = operator.get(f"{path}?{query}")
        if query == "":
            answer.expect(200)
        else:
            problem(answer, 400)


# -- last use --

def last_used(operator, key):
    return operator.get(f"/v1/keys/{key['id']}").expect(200)["last_used_at"]


def test_the_last_use_of_a_key_is_kept_for_each_way_to_use_it(operator, ingest, tenant):
    admin, publisher, unused = [
        operator.post("/v1/keys", {"role": role, "tenant": tenant}).expect(201)
        for role in ("admin", "publisher", "admin")]
    assert last_used(operator, admin) is None
    ingest.api(admin["key"]).get("/v1/subscriptions").expect(200)
    ingest.api(publisher["key"]).event(1)
    for key in (admin, publisher):
        at = until(lambda k=key: last_used(operator, k), "its use is written down")
        assert at > key["created_at"]
    assert last_used(operator, unused) is None


def test_a_key_that_is_used_all_the_time_is_written_down_once(operator, ingest, tenant, db):
    made = operator.post("/v1/keys", {"role": "admin", "tenant": tenant}).expect(201)
    row = "SELECT xmin::text, last_used_at FROM postrider.api_key WHERE id = %s"
    api = ingest.api(made["key"])
    api.get("/v1/subscriptions").expect(200)
    until(lambda: last_used(operator, made), "its use is written down")
    before = db.rows(row, (int(made["id"]),))
    never(lambda: api.get("/v1/subscriptions").status != 200
          or db.rows(row, (int(made["id"]),)) != before, "it is written again", seconds=2.5)
    db.execute("UPDATE postrider.api_key SET last_used_at = now() - interval '6 minutes'"
               " WHERE id = %s", (int(made["id"]),))
    old = last_used(operator, made)
    api.get("/v1/subscriptions").expect(200)
    until(lambda: last_used(operator, made) > old, "minutes later it is written again")


def test_of_many_programs_that_see_a_key_being_used_one_writes_it_down(operator, db):
    row = "SELECT xmin::text, last_used_at FROM postrider.api_key"
    key = int(keys(operator)[0]["id"])
    until(lambda: keys(operator)[0]["last_used_at"], "its use is written down")
    before = db.rows(row)
    statement(db.connection, "key_used", [key])
    assert db.rows(row) == before
    db.execute("UPDATE postrider.api_key SET last_used_at = now() - interval '6 minutes'")
    before = db.rows(row)
    statement(db.connection, "key_used", [key])
    assert db.rows(row) != before


def test_a_key_that_somebody_holds_keeps_nobody_waiting(operator, ingest, tenant, other, db):
    held, free = [operator.post("/v1/keys", {"role": "admin", "tenant": tenant}).expect(201)
                  for _ in range(2)]
    other.execute("SELECT FROM postrider.api_key WHERE id = %s FOR UPDATE", (int(held["id"]),))
    for key in (held, free):
        ingest.api(key["key"]).get("/v1/subscriptions").expect(200)
    until(lambda: last_used(operator, free), "the other one's use is written down")
    assert last_used(operator, held) is None
    assert Api(ingest.port, held["key"]).event(1)
