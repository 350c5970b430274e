"""The bench itself: what it promises to the tests must hold, failures above all.

The benchmarks, too, each at a size that takes seconds: its goals may well be missed then.
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bench import huge_pages, measure, peers
from bench.traffic import BODY, STAMP, Shape, line

from .api import Api
from .daemons import Cli, Ingest, environment
from .postgres import Cluster
from .wait import never, until

FAKE = """
    #!{python}
    import os, signal, socket, sys
    def say(text):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        s.sendto(text.encode(), "\\0" + os.environ["NOTIFY_SOCKET"][1:])
    signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGTERM}})
    print("fake starts", file=sys.stderr)
    if os.environ.get("POSTRIDER_BROKEN") == "true":
        sys.exit(9)
    say("READY=1\\nSTATUS=listening on 127.0.0.1:4711")
    signal.sigwait({{signal.SIGTERM}})
    sys.exit(int(os.environ.get("POSTRIDER_EXIT", "0")))
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


# -- the benchmarks --

BENCH = Path(measure.__file__).parent

BENCHMARKS = {
    "delivery": "--ours --shape d e --events 200 --runs 1 --dispatchers 1 2",
    "ingest": "--ours --seconds 1 --runs 1 --connections 4 --batch-connections 1",
    "latency": "--minutes 0.05 --events 200 --idle-events 10 --connections 4",
    "growth": "--finished 0 500 --events 200 --runs 1",
    "scale": "--delay-ms 20 --in-flight 1 --wall 2 --seconds 1 --runs 1 --events 3000",
    "flat_cost": "--rows 2000 --shape ready",
    "isolation": "--requests 20 --subscriptions 2 --seconds 1 --rounds 1",
    "retention": "--rows 300 --slice 3 --rate 20 --seconds 3",
    "log": "--rows 3000",
}


def run(name, arguments, tmp_path):
    """A benchmark, to its end; what it wrote."""
    for program in ("nginx", "wrk"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    path = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-B", BENCH / f"{name}.py", *arguments.split(), "--json", path],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250, check=False)
    assert path.exists(), done.stdout + done.stderr
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return json.loads(path.read_text())


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_runs_to_its_end(name, tmp_path):
    found = run(name, BENCHMARKS[name], tmp_path)
    for goal in found.get("goals", []):
        assert goal["is_"] > 0, goal


def test_each_benchmark_is_run_here():
    commands = {path.stem for path in BENCH.glob("*.py") if os.access(path, os.X_OK)}
    assert commands == set(BENCHMARKS)


def test_all_of_a_backlog_is_sent_and_counted(tmp_path):
    found = run("delivery", "--ours --shape b --events 300 --runs 2 --dispatchers 1", tmp_path)
    runs = found["shapes"]["b"]["postrider"]
    assert [(one["sent"], one["is_done"]) for one in runs] == [(300, True)] * 2


def test_minutes_of_delivery_are_fed_by_ingest(tmp_path):
    found = run("delivery", "--minutes 0.05", tmp_path)
    assert [one["minute"] for one in found["minutes"]] == [1]
    assert found["minutes"][0]["ingest_us"] > 0


def test_peers_are_measured_beside(tmp_path):
    if not peers.fetch():
        pytest.skip("the peers cannot be had")
    found = run("delivery", "--shape c one --events 150 --runs 1 --dispatchers 1"
                " --limit-seconds 1", tmp_path)
    assert {name: runs[0]["sent"] for name, runs in found["shapes"]["c"].items()} == {
        "postrider": 150, "graphile-worker": 150, "graphile-worker x2": 150,
        "graphile-worker, ordered": 150, "pg-boss, ordered": 150}
    assert found["shapes"]["one"]["pg-boss, ordered"][0]["is_done"]
    assert found["limits"]["libcurl"]["per_second"] > 0
    found = run("ingest", "--seconds 1 --runs 1 --connections 4 --batch-connections 1", tmp_path)
    assert {"graphile-worker", "pg-boss"} < found["runs"].keys()


def huge_pages_of(server):
    with server.connect() as connection:
        return connection.execute("SHOW huge_pages").fetchone()[0]


def test_huge_pages_are_given_back():
    before = huge_pages.memory("HugePages_Total")
    with Cluster(shared_buffers="16MB") as server:
        with huge_pages.huge_pages(server):
            assert huge_pages_of(server) == server.settings["huge_pages"]
    assert huge_pages.memory("HugePages_Total") == before


@pytest.mark.parametrize("free", [0, 10**9])
def test_without_huge_pages_it_goes_on_and_says_so(free, monkeypatch, capsys):
    """There are none, or somebody takes those that were free."""
    start = Cluster.start

    def start_without(server):
        if server.settings["huge_pages"] == "on":
            raise RuntimeError("PostgreSQL ended")
        start(server)

    monkeypatch.setattr(huge_pages, "POOL", Path("/proc/self/no-such-file"))
    monkeypatch.setattr(huge_pages, "free", lambda: free)
    monkeypatch.setattr(Cluster, "start", start_without)
    with Cluster(shared_buffers="16MB") as server, huge_pages.huge_pages(server):
        assert huge_pages_of(server) == "off"
    assert "no huge pages" in capsys.readouterr().err


def test_what_a_child_took_is_counted_after_its_end():
    meter = measure.Meter({"ours": [os.getpid()]}).start()
    subprocess.run([sys.executable, "-c", "sum(range(10**7))"], check=True)
    assert meter.stop(1)["ours_us"] > 50_000


def test_a_goal_that_is_missed_fails_the_run(tmp_path, capsys):
    goals = [measure.Goal("speed", 5, least=4), measure.Goal("wait", 5, most=4)]
    with pytest.raises(SystemExit) as ended:
        measure.conclude(tmp_path / "x.json", {}, goals)
    assert ended.value.code == 1
    assert [goal["is_met"] for goal in json.loads((tmp_path / "x.json").read_text())["goals"]] == [
        True, False]
    assert "NOT wait: 5 (at most 4)" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        measure.conclude(tmp_path / "x.json", {}, goals[:1])
    assert ended.value.code == 0


def test_an_event_is_as_long_as_it_says():
    for made in (line(1), line(123456, "reading.7", "a99")):
        assert len(made) + STAMP == BODY
        json.loads(made)


def test_the_one_in_front_is_in_front():
    shape = Shape("e", "", events=10, assets=3, hot=0.4)
    assert [shape.asset(n) for n in range(10)] == ["hot"] * 4 + ["a1", "a2", "a0", "a1", "a2", "a0"]
