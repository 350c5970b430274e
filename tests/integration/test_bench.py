"""The bench itself: what it promises to the tests must hold, failures above all."""

import http.client
import os
import signal
import sys
import textwrap

import pytest

from .api import Api
from .daemons import Cli, Ingest, environment
from .wait import never, until

FAKE = """
    #!{python}
    import os, signal, socket, sys, threading
    def say(text):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.sendto(text.encode(), "\\0" + os.environ["NOTIFY_SOCKET"][1:])
    def leave(*_):
        sys.exit(int(os.environ.get("POSTRIDER_EXIT", "0")))
    signal.signal(signal.SIGTERM, leave)
    print("fake starts", file=sys.stderr)
    if os.environ.get("POSTRIDER_BROKEN") == "true":
        sys.exit(9)
    say("READY=1\\nSTATUS=listening on 127.0.0.1:4711")
    threading.Event().wait()
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A program that starts, says that it is ready, and ends as it is told."""
    path = tmp_path / "postrider-ingest"
    path.write_text(textwrap.dedent(FAKE).lstrip().format(python=sys.executable))
    path.chmod(0o755)
    monkeypatch.setenv("POSTRIDER_BIN", str(tmp_path))
    made = []

    def make(**settings):
        made.append(Ingest(tmp_path, settings))
        return made[-1]

    yield make
    for program in made:
        if program.is_running():
            program.kill()


def test_a_program_is_ready_when_it_says_so_and_tells_its_port(fake):
    program = fake().start()
    assert program.is_running()
    assert program.port == 4711
    assert "fake starts" in program.log()
    program.stop()
    assert not program.is_running()


def test_a_program_that_ends_badly_fails_the_test(fake):
    program = fake(exit=3).start()
    with pytest.raises(AssertionError, match="ended with 3"):
        program.stop()


def test_a_program_that_does_not_start_is_not_waited_for(fake):
    with pytest.raises(AssertionError, match="ended with 9"):
        fake(broken=True).start()


def test_a_start_that_must_fail_gives_its_status(fake):
    assert fake(broken=True).launch().wait() == 9


def test_a_program_that_ignores_the_end_is_killed_and_fails(fake):
    program = fake().start()
    program.pause()
    assert program.wait(seconds=0.1) == "none: it did not end"
    assert not program.is_running()


def test_a_killed_program_can_be_started_again(fake):
    program = fake().start()
    first = program.pid
    program.kill(signal.SIGKILL)
    program.start()
    assert program.pid != first
    program.restart().stop()


def test_a_paused_program_ends_well_all_the_same(fake):
    program = fake().start()
    program.pause()
    program.stop()


def test_programs_see_their_settings_and_nothing_of_ours(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://example.test/")
    monkeypatch.setenv("POSTRIDER_STRAY", "x")
    env = environment({"max_in_flight": 5, "development": False}, {"TZ": "Asia/Kolkata"})
    assert env["POSTRIDER_MAX_IN_FLIGHT"] == "5"
    assert env["POSTRIDER_DEVELOPMENT"] == "false"
    assert env["TZ"] == "Asia/Kolkata"
    assert "http_proxy" not in env and "POSTRIDER_STRAY" not in env


def test_a_command_that_fails_fails_the_test(tmp_path, monkeypatch):
    path = tmp_path / "postrider"
    path.write_text('#!/bin/sh\necho "{\\"a\\": \\"$1\\"}"; echo oops >&2; exit $2\n')
    path.chmod(0o755)
    monkeypatch.setenv("POSTRIDER_BIN", str(tmp_path))
    cli = Cli({})
    assert cli.json("x", "0") == {"a": "x"}
    assert cli.run("x", "4").returncode == 4
    with pytest.raises(AssertionError, match="(?s)exit 4.*oops"):
        cli("x", "4")


def test_until_says_what_it_waited_for():
    with pytest.raises(AssertionError, match="pigs fly"):
        until(lambda: False, "pigs fly", seconds=0.05)
    assert until(lambda: 7, "a number is there") == 7


def test_never_fails_at_once():
    never(lambda: False, "nothing", seconds=0.05)
    with pytest.raises(AssertionError, match="a light"):
        never(lambda: True, "a light", seconds=60)


def test_each_database_is_new_and_a_copy_of_its_template(cluster):
    template = cluster.create()
    template.execute("CREATE TABLE t AS SELECT 1 AS n")
    template.close()
    first, second = cluster.create(template.name), cluster.create(template.name)
    first.execute("INSERT INTO t VALUES (%s)", (2,))
    assert first.rows("SELECT n FROM t ORDER BY n") == [(1,), (2,)]
    assert second.value("SELECT count(*) FROM t") == 1
    assert second.value("SELECT n FROM t WHERE n = 5") is None
    first.drop()
    second.drop()


def test_the_server_survives_a_crash(cluster):
    database = cluster.create()
    database.execute("CREATE TABLE t (n int)")
    database.close()
    cluster.stop(signal.SIGQUIT)
    cluster.start()
    with cluster.connect(database.name) as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_the_server_does_not_run_as_root(cluster):
    assert os.stat(cluster.data).st_uid != 0


def test_an_endpoint_does_as_it_is_told_and_remembers(endpoint):
    endpoint.script(503, "drop", 204)
    api = Api(endpoint.port)
    assert api.post("/a", b"\x00\xff", headers={"X-Y": "z"}).status == 503
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        api.post("/b", {"n": 1})
    assert api.post("/c").status == 204
    assert api.get("/d").status == 204
    assert [r.path for r in endpoint.requests] == ["/a", "/b", "/c", "/d"]
    assert endpoint.requests[0].body == b"\x00\xff"
    assert endpoint.requests[0].headers["x-y"] == "z"


def test_an_endpoint_that_hangs_answers_nothing_and_can_be_closed(endpoint):
    endpoint.script("hang")
    with pytest.raises(TimeoutError):
        Api(endpoint.port, seconds=0.2).post("/")
    assert len(endpoint.requests) == 1


def test_an_endpoint_may_run_the_tests_own_code(endpoint):
    def act(handler, request):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(request.body)))
        handler.end_headers()
        handler.wfile.write(request.body)

    endpoint.script(act)
    assert Api(endpoint.port, key="k").post("/", {"a": 1}).expect(200) == {"a": 1}
    assert endpoint.requests[0].headers["authorization"] == "Bearer k"
