"""The console's files as they are served: to whom, with what, and how anew."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src/console"
FILES = sorted(path.name for path in FOLDER.iterdir())
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@pytest.fixture
def stranger(ingest):
    return ingest.api(None)


def test_every_file_is_served_as_it_is_to_whoever_asks(stranger):
    for name in FILES:
        answer = stranger.get(f"/console/{name}")
        assert (answer.status, answer.body) == (200, (FOLDER / name).read_bytes())
        assert answer.headers["Content-Type"] == TYPES[Path(name).suffix], name
    assert stranger.get("/console/").body == (FOLDER / "index.html").read_bytes()


def test_each_file_comes_with_the_policy(stranger):
    for path in ("/console/", *(f"/console/{name}" for name in FILES)):
        headers = stranger.get(path).headers
        policy = dict(part.strip().split(" ", 1)
                      for part in headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Cache-Control"] == "no-cache"


def test_what_the_browser_has_is_not_sent_again(stranger, make_ingest):
    answer = stranger.get("/console/main.js")
    tag = answer.headers["ETag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    for known in (tag, f'"x", {tag}', f"W/{tag}", "*"):
        again = stranger.get("/console/main.js", headers={"If-None-Match": known})
        assert (again.status, again.body, again.headers["ETag"]) == (304, b"", tag)
        assert "Content-Security-Policy" in again.headers
    for other in ('"x"', stranger.get("/console/").headers["ETag"]):
        assert stranger.get("/console/main.js",
                            headers={"If-None-Match": other}).status == 200
    # Whichever host serves it.
    assert make_ingest().api(None).get("/console/main.js").headers["ETag"] == tag


def test_head_tells_what_get_would(stranger):
    got, told = (stranger.call(method, "/console/style.css") for method in ("GET", "HEAD"))
    assert (told.status, told.body) == (200, b"")
    for name in ("Content-Type", "Content-Length", "ETag", "Content-Security-Policy"):
        assert told.headers[name] == got.headers[name]


def test_it_is_found_without_its_last_slash(stranger):
    answer = stranger.get("/console")
    assert (answer.status, answer.headers["Location"]) == (308, "console/")


def test_there_is_nothing_else(stranger):
    for path in ("/console/nothing.js", "/console/main", "/console/main.js/", "/console//main.js",
                 "/console/..%2Fmain.js", "/console/%2e%2e", "/console/../console/main.js",
                 "/console/" + "x" * 200, "/console/index.html%00", "/console/MAIN.JS"):
        assert stranger.get(path).status in (400, 404), path
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = stranger.call(method, "/console/main.js")
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_it_is_served_while_the_database_is_away(stranger, cluster):
    cluster.stop()
    try:
        assert stranger.get("/console/").status == 200
    finally:
        cluster.start()


def test_a_key_learns_what_it_is(ingest, cli, tenant):
    for role in ("publisher", "viewer", "admin", "operator"):
        whose = [] if role == "operator" else ["--tenant", tenant]
        made = cli.json("key", "create", "--role", role, "--name", f"of {role}", *whose)
        shown = ingest.api(made["key"]).get("/v1/key").expect(200)
        assert (shown["id"], shown["role"], shown["name"]) == (
            str(made["id"]), role, f"of {role}")
        assert shown["tenant"] == (None if role == "operator" else tenant)
        assert "key" not in shown
    ingest.api(None).get("/v1/key").expect(401)
    ingest.api("pr_" + "x" * 43).get("/v1/key").expect(401)
