"""The operator's command as it is used by hand: the live view, progress, completion."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from .daemons import binary, environment
from .replaying import Queue
from .wait import until


class Terminal:
    """A command in a terminal of so many lines."""

    def __init__(self, settings, *args, term="xterm", lines=24):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", str(binary("postrider")), *args],
            env=environment(settings, {"TERM": term} if term else None),
            stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        os.set_blocking(self.master, False)
        self.seen = ""

    def read(self):
        """All that it has printed."""
        try:
            while text := os.read(self.master, 65536):
                self.seen += text.decode().replace("\r\n", "\n")
        except (BlockingIOError, OSError):
            pass
        return self.seen

    def frames(self):
        """What was drawn, one screen after the other."""
        return self.read().split("\033[H\033[J\033[?7l")[1:]

    def end(self, sig=signal.SIGINT):
        self.process.send_signal(sig)
        status = self.process.wait(20)
        self.read()
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal(settings):
    made = []

    def make(*args, **how):
        made.append(Terminal(settings, *args, **how))
        return made[-1]

    yield make
    for each in made:
        each.close()


# -- status --

def test_status_says_how_it_stands(cli, db, queue):
    queue.die("dead")
    queue.accept("held up", "b")
    db.execute("UPDATE postrider.lane SET due_at = now() - interval '2 minutes'")
    queue.accept("waits", "c")
    now = cli.json("status")
    assert now["accepted_per_second"] is None, "a rate takes two looks"
    assert {name: now[name] for name in (
        "ingests", "dispatchers", "subscriptions", "due", "later", "held", "in_flight", "dead",
        "stuck", "replays")} == {
            "ingests": 0, "dispatchers": 0, "subscriptions": 1, "due": 2, "later": 0, "held": 0,
            "in_flight": 0, "dead": 1, "stuck": 1, "replays": 0}
    [endpoint] = now["endpoints"]
    assert endpoint["subscription_id"] == str(queue.id)
    assert (endpoint["state"], endpoint["why"], endpoint["due"]) == ("active", "ready", 2)
    assert (endpoint["dead"], endpoint["circuit"]) == (1, "closed")
    assert endpoint["url"] == "https://example.com/" and endpoint["oldest_accepted_at"]


def test_status_shows_those_in_trouble_first(cli, db):
    queues = [Queue(db) for _ in range(25)]
    db.execute("UPDATE postrider.turn SET circuit = 'open', failures = 20 WHERE subscription_id = %s",
               (queues[24].id,))
    db.execute("UPDATE postrider.turn SET failures = 3 WHERE subscription_id = %s", (queues[23].id,))
    shown = [int(each["subscription_id"]) for each in cli.json("status")["endpoints"]]
    assert shown[:3] == [queues[24].id, queues[23].id, queues[0].id] and len(shown) == 20


def test_status_says_what_the_state_says(cli, api, ingest, dispatch, db, endpoint):
    """The one for who has the database, the other for an operator's key."""
    endpoint.script(200, 404)
    made = api.subscribe(endpoint.url, on_dead="hold")
    for n in range(3):
        api.event({"n": n}, asset="a")
    operator = ingest.api(cli.json("key", "create", "--role", "operator")["key"])
    state = until(lambda: (lambda s: s["recent"]["dead"] and s)(
        operator.get("/v1/state").expect(200)), "it is counted", seconds=20)
    status = cli.json("status")
    counts = ("subscriptions", "due", "later", "held", "in_flight", "dead")
    assert {name: status[name] for name in counts} == {name: state[name] for name in counts}
    [mine], [theirs] = status["endpoints"], state["endpoints"]
    assert (mine["subscription_id"], mine["held"], mine["success"]) == (made["id"], 1, 0.5)
    assert mine.pop("success") == theirs["last_hour"]["success"]
    assert mine.items() <= theirs.items()


def test_status_counts_the_programs_that_are_up(cli, api, dispatch):
    until(lambda: [cli.json("status")[name] for name in ("ingests", "dispatchers")] == [1, 1],
          "both are up")


def test_status_once_is_a_table(cli, queue):
    queue.accept("e")
    totals, counts, _, head, row = cli("status", "--once").splitlines()
    assert totals.split()[:3] == ["at", "accepted_per_second", "tried_per_second"]
    assert counts.split()[1:3] == ["-", "-"]
    assert head.split()[:3] == ["subscription_id", "tenant", "state"]
    assert row.split()[0] == str(queue.id)


def test_status_is_drawn_anew_until_it_is_interrupted(terminal, queue):
    view = terminal("status")
    until(lambda: len(view.frames()) >= 2, "it was drawn", seconds=30)
    queue.accept("e")
    until(lambda: re.search(r"\bready\b", view.frames()[-1]), "the event is seen", seconds=30)
    last = view.frames()[-2]
    assert last.endswith("\033[?7h"), "lines wrap again"
    assert re.search(r"Z +\d+\.\d +\d+\.\d", last), "there are rates now"
    assert view.end() == 0


def test_no_more_lines_are_drawn_than_the_terminal_has(terminal, db):
    for _ in range(20):
        Queue(db)
    view = terminal("status", lines=12)
    until(lambda: len(view.frames()) >= 2, "it was drawn", seconds=30)
    assert view.frames()[0].count("\n") <= 11
    assert view.end(signal.SIGTERM) == 0


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_dumb_terminal_gets_one_view_after_the_other(term, terminal, queue):
    view = terminal("status", term=term)
    until(lambda: view.read().count("accepted_per_second") >= 2, "it goes on", seconds=30)
    assert "\033" not in view.read()
    assert view.end() == 0


def test_status_goes_on_in_a_pipe_without_control_characters(settings, queue):
    with subprocess.Popen([binary("postrider"), "status"], env=environment(settings),
                          stdout=subprocess.PIPE, text=True) as view:
        lines = [view.stdout.readline() for _ in range(7)]
        view.send_signal(signal.SIGTERM)
        assert view.wait(20) == 0
    assert "accepted_per_second" in lines[0] and "\033" not in "".join(lines)


def test_status_waits_for_a_database_that_is_away(terminal, db, queue):
    view = terminal("status")
    until(lambda: view.frames(), "it was drawn", seconds=30)
    db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
               " WHERE application_name = 'postrider'")
    n = len(view.frames())
    until(lambda: "subscription_id" in "".join(view.frames()[n + 1:]), "it came again", seconds=30)
    assert view.end() == 0


# -- completion --

COMPLETE = """
source <("$0" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_postrider
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(cli):
    def run(*words):
        """What bash offers for the last of these words."""
        done = subprocess.run(["bash", "-c", COMPLETE, str(binary("postrider")), "postrider",
                               *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()
    return run


def usages(cli):
    """{command: its options}, as the help has them."""
    commands = cli("help").split("Commands:\n")[1].split("\nWith --json")[0]
    return {re.match(r"[a-z]+( [a-z-]+)?(?= |$)", usage)[0]: re.findall(r"--[a-z]+", usage)
            for usage in re.findall(r"^  (\S.*)$", commands, re.M)}


def test_bash_completes_the_commands_of_the_table(cli, complete):
    commands = [command.split() for command in usages(cli)]
    assert len(commands) > 30
    offered = [word for word in complete("") if word[0] != "-"]
    assert sorted(offered) == sorted({words[0] for words in commands})
    for first, *second in commands:
        assert first in complete(first[:2])
        assert set(second) <= set(complete(first, ""))


def test_bash_completes_options_and_their_values(cli, complete):
    assert complete("key", "create", "--r") == ["--role"]
    roles = ["publisher", "viewer", "admin", "operator"]
    assert complete("key", "create", "--role", "") == roles
    assert complete("key", "create", "--role", "=") == roles, "bash parts words at ="
    assert complete("key", "create", "--role", "=", "v") == ["viewer"]
    assert complete("deliveries", "7", "--state", "de") == ["delivering", "delivered", "dead"]
    assert "--limit" in complete("deliveries", "--state", "dead", "--")
    assert complete("--json", "tenant", "") == ["create", "list"]
    assert complete("completion", "b") == ["bash"]
    assert complete("tenant", "create", "x") == []


def test_bash_completes_each_option_that_the_help_shows(cli, complete):
    for command, options in usages(cli).items():
        assert set(options) <= set(complete(*command.split(), "--")), command


def test_bash_completes_files_where_one_is_wanted(complete, tmp_path):
    (tmp_path / "secret.key").touch()
    path = str(tmp_path / "sec")
    for words in (("keygen",), ("event", "send"), ("subscription", "rotate-secret", "7", "--from"),
                  ("tenant", "list", "--config")):
        assert complete(*words, path) == [f"{tmp_path}/secret.key"], words


def test_completion_is_for_bash_alone(cli):
    done = cli.run("completion", "fish")
    assert (done.returncode, done.stdout) == (2, "") and "bash alone" in done.stderr


# -- replays --

def test_a_replay_can_be_waited_for(cli, queue, make_dispatch):
    queue.die(*(f"e{n}" for n in range(30)))
    make_dispatch()
    done = cli.run("replay", "dead", str(queue.id), "--rate", "1000", "--wait", "--json")
    assert done.returncode == 0 and done.stderr == "", "no bar where there is no terminal"
    found = json.loads(done.stdout)
    assert (found["state"], found["examined"], found["replayed"]) == ("done", 30, 30)
    done = cli.run("replay", "dead", "7777777", "--wait")
    assert done.returncode == 1 and "no such subscription" in done.stderr


def test_a_bar_shows_how_far_a_replay_is(terminal, queue, db):
    queue.die(*(f"e{n}" for n in range(30)))
    view = terminal("replay", "dead", str(queue.id), "--rate", "100", "--wait")
    until(lambda: re.search(r"\[\.{40}\] +0 %  0 replayed", view.read()), "it begins", seconds=30)
    queue.step()
    until(lambda: re.search(r"\[#+\.+\] +\d+ %  10 replayed", view.read()), "it goes on")
    for _ in range(3):
        db.execute("UPDATE postrider.replay_job SET next_step_at = now()")
        queue.step()
    until(lambda: view.process.poll() is not None, "it is over", seconds=20)
    assert view.process.returncode == 0
    assert re.search(r"\[#{40}\] 100 %  30 replayed\n", view.read())
    assert re.search(r"^state +done$", view.read(), re.M)


def test_a_replay_that_is_not_waited_for_any_more_goes_on(terminal, cli, queue, db):
    queue.die("e1", "e2")
    view = terminal("replay", "events", str(queue.id), "--since", "2001-01-01T00:00:00Z", "--wait")
    until(lambda: "0 replayed" in view.read(), "it begins", seconds=30)
    assert view.end(signal.SIGTERM) != 0
    [job] = cli.json("replay", "list", str(queue.id))
    assert job["state"] == "running"


def test_a_replay_that_is_cancelled_is_waited_for_no_longer(terminal, cli, queue):
    queue.die("e1", "e2")
    view = terminal("replay", "dead", str(queue.id), "--wait")
    until(lambda: "0 replayed" in view.read(), "it begins", seconds=30)
    [job] = cli.json("replay", "list", str(queue.id))
    cli("replay", "cancel", str(queue.id), job["id"])
    assert view.process.wait(20) == 0
    assert re.search(r"^state +cancelled$", view.read(), re.M)
