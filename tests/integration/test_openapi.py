"""/openapi.json describes what the program does: all of it, and nothing else."""

import collections
import json
import re
import socket
from email.message import Message
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from .api import Answer, Api
from .described import METHODS, PATH, DescribedApi, ours
from .test_tenant_isolation import ROUTES as ALL_ROUTES
from .test_tenant_isolation import WHO_MAY
from .wait import until

SOURCES = Path(__file__).parents[2] / "src"
DESCRIPTION = ours()
OPERATIONS = DESCRIPTION.operations
NOWHERE = "7777777"
# The console's files are no part of the API: test_console_files.py is about them.
ROUTES = [route for route in ALL_ROUTES if not route[1].startswith("/console")]

# 503 has a test of its own below, 504 is in test_idempotence.
OF_TROUBLE = {"503", "504"}


def nameless(path):
    """A path as the program's table has it."""
    return re.sub(r"\{(?!asset\})\w+\}", "{id}", path)


BY_ROUTE = {(method, nameless(path)): operation
            for (method, path), operation in OPERATIONS.items()}


# -- the document by itself --

def closed(required, optional=(), **of):
    """A JSON Schema: an object that has these members and no other."""
    names = {name: of.get(name, {}) for name in (*required, *optional)}
    return {"type": "object", "required": list(required), "properties": names,
            "patternProperties": {"^x-": {}}, "additionalProperties": False}


def mapped(schema):
    return {"type": "object", "additionalProperties": schema}


def or_ref(schema):
    return {"if": {"required": ["$ref"]}, "then": closed(["$ref"], ["description"]),
            "else": schema}


TEXT = {"type": "string", "minLength": 1}
EXAMPLES = mapped(closed(["value"], ["summary", "description"]))
MEDIA = mapped(closed(["schema"], ["examples"], examples=EXAMPLES))
HEADER = closed(["schema"], ["description", "required"], description=TEXT)
PARAMETER = closed(["name", "in", "schema"], ["description", "required"], **{
    "in": {"enum": ["query", "header", "path", "cookie"]}, "description": TEXT})
RESPONSE = closed(["description"], ["headers", "content"], description=TEXT,
                  headers=mapped(or_ref(HEADER)), content=MEDIA)
OPERATION = closed(
    ["operationId", "tags", "summary", "security", "responses"],
    ["description", "parameters", "requestBody", "deprecated"],
    operationId={"type": "string", "pattern": "^[a-z][A-Za-z]+$"}, summary=TEXT,
    parameters={"type": "array", "items": or_ref(PARAMETER), "uniqueItems": True},
    requestBody=closed(["content"], ["description", "required"], content=MEDIA),
    responses={"type": "object", "minProperties": 1,
               "propertyNames": {"pattern": "^([1-5][0-9][0-9]|default)$"},
               "additionalProperties": or_ref(RESPONSE)},
    security={"type": "array", "items": mapped({"type": "array", "items": TEXT})})
ITEM = closed([], ["summary", "description", "parameters", *METHODS],
              parameters={"type": "array", "items": or_ref(PARAMETER)},
              **{method: OPERATION for method in METHODS})
NAMED = {"propertyNames": {"pattern": "^[A-Za-z0-9._-]+$"}}

# Objects of OpenAPI 3.1, as far as they are used: a misspelt name is a fault.
OPENAPI = closed(
    ["openapi", "info", "paths"], ["servers", "tags", "components", "security"],
    openapi={"type": "string", "pattern": r"^3\.1\.\d+$"},
    info=closed(["title", "version"], ["summary", "description", "license"]),
    servers={"type": "array", "items": closed(["url"], ["description"])},
    tags={"type": "array", "items": closed(["name"], ["description"])},
    paths={"type": "object", "propertyNames": {"pattern": "^/"}, "additionalProperties": ITEM},
    components=closed(
        [], ["securitySchemes", "parameters", "headers", "responses", "schemas"],
        parameters=mapped(or_ref(PARAMETER)) | NAMED, headers=mapped(HEADER) | NAMED,
        responses=mapped(RESPONSE) | NAMED, schemas=NAMED,
        securitySchemes=mapped(closed(["type"], ["scheme", "description", "bearerFormat"]))))


def walk(value, at=""):
    """Each object of a document, with its JSON pointer."""
    if isinstance(value, dict):
        yield at, value
        for name, each in value.items():
            yield from walk(each, f"{at}/{name}")
    elif isinstance(value, list):
        for n, each in enumerate(value):
            yield from walk(each, f"{at}/{n}")


def schemas():
    """Each schema, the outer ones of components and of all that uses one."""
    for name, schema in DESCRIPTION.document["components"]["schemas"].items():
        yield f"/components/schemas/{name}", schema
    for at, value in walk(DESCRIPTION.document):
        if "schema" in value and "/schemas/" not in at:
            yield f"{at}/schema", value["schema"]


def test_the_document_is_openapi_3_1():
    errors = [f"at /{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
              for e in Draft202012Validator(OPENAPI).iter_errors(DESCRIPTION.document)]
    assert errors == []


def test_every_schema_is_one():
    known = set(Draft202012Validator.META_SCHEMA["properties"]) | {"$ref"} | {
        name for vocabulary in ("core", "applicator", "unevaluated", "validation", "meta-data",
                                "format-annotation", "content")
        for name in vocabulary_of(vocabulary)}
    for at, schema in schemas():
        Draft202012Validator.check_schema(schema)
        for inner, words in schema_objects(schema, at):
            assert set(words) <= known, f"{inner}: what is {set(words) - known}?"


def vocabulary_of(name):
    resolver = Draft202012Validator({}).resolver
    return resolver.resolve(
        f"https://json-schema.org/draft/2020-12/meta/{name}")[1]["properties"]


def schema_objects(schema, at):
    """A schema and those within it, without the names of members and examples."""
    if not isinstance(schema, dict):
        return
    yield at, schema
    for name in ("properties", "patternProperties", "$defs"):
        for member, each in schema.get(name, {}).items():
            yield from schema_objects(each, f"{at}/{name}/{member}")
    for name in ("items", "additionalProperties", "propertyNames", "unevaluatedProperties"):
        yield from schema_objects(schema.get(name), f"{at}/{name}")
    for name in ("allOf", "oneOf", "anyOf"):
        for n, each in enumerate(schema.get(name, ())):
            yield from schema_objects(each, f"{at}/{name}/{n}")


def test_every_reference_leads_somewhere_and_nothing_is_left_over():
    used = set()
    for at, value in walk(DESCRIPTION.document):
        if "$ref" in value:
            used.add(value["$ref"])
            assert DESCRIPTION.resolver.resolve(value["$ref"]), at
    for kind, named in DESCRIPTION.document["components"].items():
        if kind == "securitySchemes":
            continue
        left = {name for name in named if f"#/components/{kind}/{name}" not in used}
        assert not left, f"nothing refers to these of /components/{kind}"


def test_names_are_unique_and_paths_name_their_parameters():
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(names) == len(set(names))
    tags = {tag["name"] for tag in DESCRIPTION.document["tags"]}
    for (method, path), operation in OPERATIONS.items():
        named = re.findall(r"\{(\w+)\}", path)
        given = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert sorted(named) == sorted(given), f"{method} {path}"
        assert all(p.get("required") for p in operation["parameters"] if p["in"] == "path")
        assert set(operation["tags"]) <= tags
    assert len(BY_ROUTE) == len(OPERATIONS), "two paths that the program takes for one"


def test_no_object_of_ours_is_open():
    """A member that nobody described is a fault, in questions and in answers."""
    joined = {schema["$ref"] for _, value in schemas() for _, whole in schema_objects(value, "")
              for schema in whole.get("allOf", ()) if "$ref" in schema}
    for at, outer in schemas():
        for inner, schema in schema_objects(outer, at):
            if "properties" not in schema or f"#{inner}" in joined or "/allOf/" in inner:
                continue
            shut = (schema.get("additionalProperties") is False
                    or schema.get("unevaluatedProperties") is False)
            is_this = at.startswith("/paths/~1openapi.json")
            assert shut or is_this, f"{inner} takes members that are not described"


# -- the document and the program's tables --

SKELETON = """\
  "{path}": {{
    "parameters": [{{"$ref": "#/components/parameters/..."}}],     for each {{name}} in the path
    "{method}": {{
      "operationId": "...", "tags": ["..."], "summary": "...",
      "security": {security},
      "requestBody": {{"required": true, "content": {{"application/json": {{
        "schema": {{"$ref": "#/components/schemas/..."}}, "examples": {{"one": {{"value": ...}}}}}}}}}},
      "responses": {{
        "200": {{
          "description": "...",
          "headers": {{"Cache-Control": {{"$ref": "#/components/headers/NoStore"}}}},
          "content": {{"application/json": {{"schema": {{"$ref": "#/components/schemas/..."}}}}}}
        }},
        "401": {{"$ref": "#/components/responses/Unauthorized"}},
        "403": {{"$ref": "#/components/responses/Forbidden"}},
        "404": {{"$ref": "#/components/responses/NotFound"}},
        "503": {{"$ref": "#/components/responses/Unavailable"}},
        "default": {{"$ref": "#/components/responses/Problem"}}
      }}
    }}
  }}
Its path has a name of its own for each {{id}}, described under components, parameters.  What it
answers is a schema under components, schemas, that is closed.  Then call it in this file, so that
each status that it lists is seen."""


def requirement(route):
    """The `security` of a route: a key of any of its roles."""
    return [{"key": [role]} for role in ("publisher", "viewer", "admin", "operator")
            if role in (WHO_MAY.get(route) or ())]


def test_the_program_and_its_description_have_the_same_routes():
    for route in ROUTES:
        assert route in BY_ROUTE, (
            f"{' '.join(route)} is in src/ingest/routes.c and not in src/ingest/openapi.json."
            " Add under \"paths\":\n" + SKELETON.format(
                path=route[1], method=route[0].lower(),
                security=json.dumps(requirement(route))))
    for route in BY_ROUTE:
        assert route in ROUTES, (
            f"{' '.join(route)} is in src/ingest/openapi.json and not in src/ingest/routes.c:"
            " take it out of \"paths\"")


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_a_route_names_the_roles_that_may(route):
    if route in BY_ROUTE:
        assert BY_ROUTE[route]["security"] == requirement(route)


KINDS = re.findall(r'\{ (\d{3}), "([a-z-]+)",\s*"([^"]+)"',
                   (SOURCES / "ingest/problem_kind.c").read_text())


def test_every_status_that_the_program_refuses_with_has_a_kind():
    """Or it would be called internal."""
    said = set()
    for source in (*SOURCES.glob("ingest/*.c"), *SOURCES.glob("http/*.c")):
        text = source.read_text()
        said |= set(re.findall(
            r"(?:problem_reply\w*|refuse|conn_refuse|add_fault)\([^;]*?\b([45]\d\d),", text))
        said |= set(re.findall(r"status = ([45]\d\d);", text))
    assert len(said) > 15
    assert said <= {status for status, _, _ in KINDS}


def test_every_kind_of_problem_is_described():
    problem = DESCRIPTION.document["components"]["schemas"]["Problem"]
    names = [name for _, name, _ in KINDS]
    assert problem["properties"]["type"]["enum"] == [f"/problems/{name}" for name in names]
    (kind,) = BY_ROUTE["GET", "/problems/{id}"]["parameters"]
    assert kind["schema"]["enum"] == names


@pytest.mark.parametrize("route", OPERATIONS, ids=" ".join)
def test_the_examples_of_requests_fit(route):
    for media, content in OPERATIONS[route].get("requestBody", {}).get("content", {}).items():
        assert content["examples"], "an example says more than a schema"
        for name, example in content["examples"].items():
            assert DESCRIPTION.faults(content["schema"], example["value"]) == [], name


# -- the judge --

def good_tenant(**other):
    return {"id": "1", "name": "acme", "created_at": "2026-01-31T12:00:00.000000Z", **other}


def answer(body, status=200, **headers):
    message = Message()
    for name, value in {"Content_Type": "application/json", "Cache_Control": "no-store",
                        **headers}.items():
        message[name.replace("_", "-")] = value
    return Answer(status, message, json.dumps(body).encode())


@pytest.mark.parametrize("given, fault", [
    (answer(good_tenant()), None),
    (answer(good_tenant(more=1)), "more"),
    (answer({"id": "1", "name": "acme"}), "created_at"),
    (answer(good_tenant(id=1)), "/id"),
    (answer(good_tenant(), 202), "202"),
    (answer(good_tenant(), X_More="1"), "X-More"),
    (answer(good_tenant(), Cache_Control="public"), "cache-control"),
    (answer(good_tenant(), Content_Type="text/html"), "text/html"),
    (answer(good_tenant(), 404), "application/json"),
])
def test_what_is_not_as_described_is_seen(given, fault):
    faults = DESCRIPTION.judge(("GET", "/v1/tenants/{tenant}"), given)
    assert (faults == []) if fault is None else (fault in "\n".join(faults))


def test_a_member_too_many_is_seen_where_schemas_are_joined():
    key = {"id": "1", "tenant": None, "role": "operator", "name": "x", "expires_at": None,
           "revoked_at": None, "last_used_at": None, "created_at": "2026-01-31T12:00:00.000000Z"}
    schema = {"$ref": "#/components/schemas/Key"}
    assert DESCRIPTION.faults(schema, key) == []
    assert DESCRIPTION.faults(schema, {**key, "key": "pr_x"}) != []
    assert DESCRIPTION.faults({"$ref": "#/components/schemas/KeyMade"}, key) != []


# -- what really comes --

NDJSON = {"Content-Type": "application/x-ndjson"}
NO_NUMBER = "x"

# A body that can be read and says what cannot be.
WRONG = {
    "postEvent": {"type": 1, "data": 1},
    "postEvents": b'{"type":1,"data":1}',
    "createSubscription": {"url": "ftp://example.com"},
    "changeSubscription": {"max_attempts": 0},
    "rotateSecret": {"overlap_seconds": -1},
    "rotateSigningKey": {"signing_key": "whsk_"},
    "replayDead": {"since": "yesterday"},
    "replayEvents": {"rate_per_second": 0},
    "createKey": {"role": "operator", "tenant": "acme"},
    "createTenant": {"name": "-"},
}


class World:
    """The program, its keys, and what was seen of it."""

    def __init__(self, ingest, cli, admin_key):
        self.seen = collections.Counter()
        self.admin = self.api(ingest, admin_key)
        self.keys = {"admin": admin_key}
        for role in ("publisher", "viewer", "operator"):
            whose = [] if role == "operator" else ["--tenant", "acme"]
            self.keys[role] = cli.json("key", "create", "--role", role, *whose)["key"]
        self.nobody = self.api(ingest, None)
        self.operator = self.admin.as_key(self.keys["operator"])

    def api(self, ingest, key):
        return DescribedApi(ingest.api(key), self.seen)

    def refusals(self, tag):
        """Every call of a tag is made in each way that the description says is refused."""
        for (method, path), operation in OPERATIONS.items():
            if tag in operation["tags"]:
                self._refuse(method, re.sub(r"\{\w+\}", NOWHERE, path), operation)

    def _refuse(self, method, path, operation):
        roles = [role for need in operation["security"] for role in need["key"]]
        (media, content), = operation.get("requestBody", {}).get(
            "content", {None: {}}).items()
        example = next(iter(content.get("examples", {"none": {"value": None}}).values()))["value"]
        given = example.encode() if isinstance(example, str) else example
        kind = {"Content-Type": media} if media else {}
        right = self.nobody.as_key(self.keys[roles[-1]]) if roles else self.nobody

        def call(status, body=given, api=right, where=path, **headers):
            if str(status) in operation["responses"]:
                api.call(method, where, body, {**kind, **headers}).expect(status)

        right.call(method, path, given, {**kind, "Accept": "image/png"}).expect(406)
        right.call(method, path + "?nothing=1", given, kind).expect(400)
        call(401, api=self.nobody)
        call(401, api=self.nobody.as_key("pr_" + 44 * "x"))
        for role, key in self.keys.items():
            if role not in roles:
                call(403, api=self.nobody.as_key(key))
        call(404)
        call(404, where=path.replace(NOWHERE, NO_NUMBER))
        if media is None:
            right.call(method, path, b'{"x":1}', kind).expect(400)
            return
        call(400, b"[")
        call(413, b" " * 70000 if media.endswith("/json") else b" " * 20000000)
        right.call(method, path, given, {"Content-Type": "text/xml"}).expect(415)
        right.call(method, path, given, {**kind, "Content-Encoding": "gzip"}).expect(415)
        call(422, WRONG[operation["operationId"]])

    def has_seen_all(self, tag):
        """Each status that an operation names has come from it."""
        for (method, path), operation in OPERATIONS.items():
            if tag not in operation["tags"]:
                continue
            left = {status for status in operation["responses"]
                    if status not in OF_TROUBLE | {"default"}
                    and (method, path, status) not in self.seen}
            assert not left, (
                f"{method} {path}: no test has seen {', '.join(sorted(left))}. Make such a call"
                " in test_openapi.py, or take the status out of src/ingest/openapi.json")


@pytest.fixture
def world(ingest, cli, admin_key):
    return World(ingest, cli, admin_key)


def examples(operation_id):
    """The example bodies of an operation."""
    (operation,) = [o for o in OPERATIONS.values() if o["operationId"] == operation_id]
    (content,) = operation["requestBody"]["content"].values()
    return [example["value"] for example in content["examples"].values()]


def test_events_are_as_described(world, endpoint):
    api = world.admin
    api.subscribe(endpoint.url)
    for event in examples("postEvent"):
        api.post("/v1/events", event).expect(202)
    event = {"id": "e1", "type": "t", "data": {"n": 1}, "asset": "a", "subscriptions": ["1"]}
    api.post("/v1/events", event).expect(202)
    api.post("/v1/events", event).expect(200)
    api.post("/v1/events", {**event, "data": 2}).expect(409)
    api.post("/v1/events", {**event, "id": "e2", "subscriptions": [NOWHERE]}).expect(422)
    api.post("/v1/events", {**event, "id": "e2", "more": 1}).expect(400)
    api.get("/v1/events/e1").expect(200)
    api.get("/v1/events/e1/payload").expect(200)
    for text in examples("postEvents"):
        api.post("/v1/events/batch", text.encode(), headers=NDJSON).expect(202)
    batch = json.dumps({**event, "id": "b1"}).encode()
    api.post("/v1/events/batch", batch, headers=NDJSON).expect(202)
    api.post("/v1/events/batch", batch, headers=NDJSON).expect(200)
    api.post("/v1/events/batch", batch.replace(b"{", b'{ "data":3,', 1), headers=NDJSON).expect(422)
    api.post("/v1/events/batch", batch.replace(b'"n": 1', b'"n": 2'), headers=NDJSON).expect(409)
    world.refusals("events")
    world.has_seen_all("events")


def test_subscriptions_are_as_described(world, dispatch, endpoint, client_certificate):
    api, (certificate, key) = world.admin, client_certificate
    for form in examples("createSubscription"):
        api.post("/v1/subscriptions", {**form, "url": endpoint.url}).expect(201)
    whole = api.post("/v1/subscriptions", {
        "url": endpoint.url, "event_types": ["a.*", "b"], "ed25519_signature": True,
        "headers": {"X-A": "1"}, "secret_headers": {"X-B": "2"}, "tls_ca": certificate,
        "tls_certificate": certificate, "tls_key": key, "rate_per_second": 0.5,
        "secret": "whsec_" + 10 * "Aa09", "older_signature": True}).expect(201)
    path = "/v1/subscriptions/" + whole["id"]
    api.get(path).expect(200)
    api.get("/v1/subscriptions?limit=1").expect(200)
    api.get("/v1/subscriptions?after=1&limit=200").expect(200)
    api.call("HEAD", path).expect(200)
    for change in examples("changeSubscription"):
        api.patch(path, change).expect(200)
    api.patch(path, {"tls_ca": None, "tls_certificate": None, "tls_key": None, "headers": None,
                     "secret_headers": None, "ed25519_signature": False}).expect(200)
    api.patch("/v1/subscriptions/1", {"ed25519_signature": True}).expect(200)
    for form in examples("rotateSecret"):
        api.post(path + "/rotate-secret", form).expect(200)
    api.post(path + "/rotate-signing-key", {}).expect(409)
    for form in examples("rotateSigningKey"):
        api.post("/v1/subscriptions/1/rotate-signing-key", form).expect(200)
    for move, status in (("enable", 200), ("pause", 200), ("enable", 409), ("resume", 200),
                         ("disable", 200), ("pause", 409), ("resume", 409), ("enable", 200)):
        api.post(f"{path}/{move}").expect(status)
    stale = {"If-Match": '"999"'}
    for move in ("pause", "resume", "enable", "disable", "rotate-secret", "rotate-signing-key"):
        api.post(f"{path}/{move}", {}, headers=stale).expect(412)
        api.post(f"{path}/{move}", {}, headers={"If-Match": "7"}).expect(400)
    api.patch(path, {}, headers=stale).expect(412)
    api.delete(path, headers=stale).expect(412)
    api.patch(path, {}, headers={"If-Match": "7"}).expect(400)
    api.delete(path, headers={"If-Match": "7"}).expect(400)
    api.delete(path, headers={"If-Match": api.get(path).headers["ETag"]}).expect(204)
    api.post("/v1/subscriptions/1/test").expect(200)
    until(lambda: api.post("/v1/subscriptions/1/test").status == 429, "it is asked too soon")
    world.refusals("subscriptions")
    world.has_seen_all("subscriptions")


def over(api, path, state):
    """Wait until a delivery has a state; each answer on the way is checked."""
    return until(lambda: (got := api.get(path).expect(200))["state"] == state and got,
                 f"{path} is {state}")


def test_deliveries_and_replays_are_as_described(world, make_endpoint, dispatch):
    api = world.admin
    ids = {}
    for name, url, words in (("held", make_endpoint(), (404, "hang")),
                             ("given up", make_endpoint(), (404,)),
                             ("unheard", None, ())):
        if url:
            url.script(*words)
        made = api.subscribe(url.url if url else "http://127.0.0.1:9/", event_types=["t"],
                             on_dead="hold", timeout_ms=2000, circuit_after=1)
        ids[name] = f"/v1/subscriptions/{made['id']}"
    event = [api.event(n, type="t", asset="x")["id"] for n in (1, 2)]
    paths = {}
    for n, each in enumerate(event):
        for path, delivery in zip(ids.values(),
                                  api.get(f"/v1/events/{each}").expect(200)["deliveries"]):
            paths[path, n] = f"{path}/deliveries/{delivery['id']}"
    dead, given_up, unheard = (paths[ids[name], 0] for name in ids)
    over(api, dead, "dead")
    over(api, given_up, "dead")
    assert over(api, paths[ids["held"], 1], "pending")["why"] == "order"
    assert over(api, unheard, "retrying")["history"][0]["ended"] == "connect_failed"
    api.post(unheard + "/retry").expect(409)
    api.post(unheard + "/discard").expect(409)
    api.post(given_up + "/discard").expect(200)
    over(api, given_up, "cancelled")
    api.post(dead + "/retry").expect(202)
    over(api, dead, "delivering")
    api.get(ids["held"] + "/deliveries?limit=1").expect(200)
    api.get(ids["held"] + "/deliveries?state=delivering&type=t&asset=x").expect(200)
    for form in examples("replayDead"):
        job = api.post(ids["held"] + "/retry-dead", form).expect(202)
    for form in examples("replayEvents"):
        api.post(ids["held"] + "/replay", form).expect(202)
    api.post(ids["held"] + "/replay",
             {"since": "2026-01-31T12:00:00Z", "until": "2026-01-31T12:00:00Z"}).expect(422)
    api.get(ids["held"] + "/replays").expect(200)
    api.get(f"{ids['held']}/replays/{job['id']}").expect(200)
    api.delete(f"{ids['held']}/replays/{job['id']}").expect(200)
    for tag in ("deliveries", "replays"):
        world.refusals(tag)
        world.has_seen_all(tag)


def test_the_state_is_as_described(world, make_endpoint, dispatch, db):
    api = world.admin
    ids = []
    for words in (200, "hang"), (404,), (503,):
        endpoint = make_endpoint()
        endpoint.script(*words)
        ids.append(api.subscribe(endpoint.url, on_dead="hold", timeout_ms=5000,
                                 retry_base_ms=60000)["id"])
    for n in range(3):
        api.event(n, asset="a/b")
    until(lambda: {e["subscription_id"]: e["why"] for e in api.get("/v1/state").expect(200)[
        "endpoints"]} == dict(zip(ids, ("in flight", "held", "retry"))), "each waits")
    until(lambda: api.get("/v1/state").expect(200)["recent"]["dead"], "it is counted", seconds=20)
    assert len(api.get("/v1/assets/a%2Fb").expect(200)["lanes"]) == 3
    api.get(f"/v1/assets/a%2Fb?subscription={ids[0]}&limit=1").expect(200)
    assert api.get("/v1/dead-letters").expect(200)["groups"]
    api.get(f"/v1/dead-letters?subscription={ids[0]}&reason=x%20y").expect(200)
    for span in "hour", "day":
        api.get(f"/v1/state/history?span={span}&subscription={ids[0]}").expect(200)
        world.operator.get(f"/v1/state/history?span={span}&tenant=acme").expect(200)
    world.operator.get("/v1/state?tenant=acme&limit=1").expect(200)
    for path in ("/v1/assets/a?limit=0", "/v1/dead-letters?subscription=x", "/v1/state?limit=0",
                 "/v1/state/history?span=year"):
        api.get(path).expect(400)
    world.refusals("state")
    world.has_seen_all("state")


def test_what_operators_see_is_as_described(world, api):
    operator = world.operator
    for form in examples("createKey"):
        made = operator.post("/v1/keys", form).expect(201)
    operator.post("/v1/keys", {"role": "viewer", "tenant": "acme"}).expect(201)
    operator.post("/v1/keys", {"role": "viewer", "tenant": "nobody"}).expect(422)
    operator.get(f"/v1/keys/{made['id']}").expect(200)
    operator.get("/v1/keys?tenant=acme&limit=2").expect(200)
    operator.get("/v1/keys?after=1").expect(200)
    operator.post(f"/v1/keys/{made['id']}/revoke").expect(200)
    for form in examples("createTenant"):
        tenant = operator.post("/v1/tenants", form).expect(201)
        operator.post("/v1/tenants", form).expect(409)
    operator.get(f"/v1/tenants/{tenant['id']}").expect(200)
    operator.get("/v1/tenants?limit=1").expect(200)
    operator.get("/v1/audit").expect(200)
    page = operator.get("/v1/audit?limit=1&since=2026-01-31T12:00:00Z").expect(200)
    operator.get(f"/v1/audit?before={page['next_before']}&action=key.created").expect(200)
    operator.get("/v1/audit?actor=nobody&subject=1&tenant=acme").expect(200)
    for path in ("/v1/audit", "/v1/keys", "/v1/tenants"):
        for query in ("limit=0", "limit=201", "limit=1&limit=1", "more=1"):
            operator.get(f"{path}?{query}").expect(400)
    world.refusals("operators")
    world.has_seen_all("operators")


def test_what_anybody_may_ask_is_as_described(world, ingest):
    nobody = world.nobody
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        assert nobody.get(path).status == 200
        assert nobody.call("HEAD", path).status == 200
    served = nobody.get("/openapi.json")
    assert served.body == PATH.read_bytes()
    tag = served.headers["ETag"]
    for known in (tag, f'"x", W/{tag}', "*"):
        again = nobody.get("/openapi.json", headers={"If-None-Match": known})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
    assert nobody.get("/openapi.json", headers={"If-None-Match": '"x"'}).status == 200
    for status, name, title in KINDS:
        page = nobody.get(f"/problems/{name}")
        assert page.status == 200
        assert page.body.decode().startswith(f"{status} {name}: {title}\n\n")
    for key in world.keys.values():
        nobody.as_key(key).get("/v1/key").expect(200)
    world.refusals("about")
    world.has_seen_all("about")


# -- problems that no route is to blame for --

def raw(port, request):
    """The status and the problem that some bytes are answered with."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(request.encode())
        sock.shutdown(socket.SHUT_WR)
        got = b"".join(iter(lambda: sock.recv(65536), b""))
    head, _, body = got.decode().partition("\r\n\r\n")
    status, *lines = head.split("\r\n")
    message = Message()
    for line in lines:
        name, _, value = line.partition(": ")
        message[name] = value
    return Answer(int(status.split()[1]), message, body.encode())


HOST = "Host: localhost\r\n"
BROKEN = [
    (400, "hello\r\n\r\n"),
    (400, f"GET /healthz HTTP/1.1\r\n{HOST}X : 1\r\n\r\n"),
    (400, f"POST /v1/events HTTP/1.1\r\n{HOST}Content-Length: x\r\n\r\n"),
    (400, f"POST /v1/events HTTP/1.1\r\n{HOST}Content-Length: 9\r\n"
          "Authorization: Bearer pr_x\r\nContent-Type: application/json\r\n\r\n{"),
    (404, f"GET /nothing HTTP/1.1\r\n{HOST}\r\n"),
    (405, f"PUT /v1/events HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n"),
    (411, f"POST /v1/events HTTP/1.1\r\n{HOST}\r\n"),
    (414, f"GET /{20000 * 'x'} HTTP/1.1\r\n{HOST}\r\n"),
    (417, f"GET /healthz HTTP/1.1\r\n{HOST}Expect: more\r\n\r\n"),
    (431, f"GET /healthz HTTP/1.1\r\n{HOST}X: {20000 * 'x'}\r\n\r\n"),
    (501, f"BREW / HTTP/1.1\r\n{HOST}\r\n"),
    (505, f"GET /healthz HTTP/2.0\r\n{HOST}\r\n"),
]
NAMES = {int(status): name for status, name, _ in KINDS}


def check_problem(answer, status):
    """It is a problem as described, of the kind that its status has."""
    assert answer.status == status, answer
    response = DESCRIPTION.document["components"]["responses"]["Problem"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Content-Type"] == "application/problem+json"
    schema = response["content"]["application/problem+json"]["schema"]
    assert DESCRIPTION.faults(schema, answer.json) == []
    assert (answer.json["status"], answer.json["type"]) == (status, f"/problems/{NAMES[status]}")


def test_broken_requests_get_a_problem_of_their_kind(ingest):
    for status, request in BROKEN:
        check_problem(raw(ingest.port, request), status)


def test_each_path_says_which_methods_it_has(ingest):
    """More than one path may fit: /v1/events/batch is an event's, too."""
    for path in {re.sub(r"\{\w+\}", "1", path) for _, path in OPERATIONS}:
        methods = {m.upper() for m in METHODS} - {"TRACE"}
        has = {method for method in methods if DESCRIPTION.find(method, path)}
        for method in methods - has - {"HEAD"}:
            answer = ingest.api(None).call(method, path)
            check_problem(answer, 405)
            assert set(answer.headers["Allow"].split(", ")) == has


def test_without_the_database_each_route_says_so_as_described(world, cluster):
    cluster.stop()
    try:
        until(lambda: world.nobody.get("/readyz").status == 503, "it is not ready")
        for (method, path), operation in OPERATIONS.items():
            if not operation["security"]:
                continue
            (media, content), = operation.get("requestBody", {}).get(
                "content", {None: {"examples": {"none": {"value": None}}}}).items()
            body = next(iter(content["examples"].values()))["value"]
            answer = world.admin.call(
                method, re.sub(r"\{\w+\}", "1", path),
                body.encode() if isinstance(body, str) else body,
                {"Content-Type": media} if media else {})
            check_problem(answer, 503)
            assert answer.headers["Retry-After"] == "1"
    finally:
        cluster.start()


def test_what_goes_wrong_here_is_a_problem_too(world, db):
    db.execute("ALTER TABLE postrider.tenant RENAME TO nowhere")
    check_problem(world.operator.get("/v1/tenants"), 500)
