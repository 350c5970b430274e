"""PostgreSQL and our programs, as processes that end when the demo does."""

import csv
import glob
import http.client
import io
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

POLL = 0.05
START_SECONDS = 60
END_SECONDS = 30
SOCKET_MAX = 107  # bytes of a Unix socket's address


class Failure(Exception):
    """What the demo cannot go on after, in words for a person."""


def until(condition, sentence, seconds):
    """Poll `condition` until it is true and return its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {sentence}")
        time.sleep(POLL)


def tail(path, lines=20):
    text = path.read_text(errors="replace") if path.exists() else ""
    return "\n".join(text.splitlines()[-lines:])


class Process:
    """A child in a session of its own: a Ctrl-C reaches us alone, and we end it."""

    def __init__(self, name, command, log, env=None, stop=signal.SIGTERM, killed=signal.SIGKILL,
                 drop=()):
        self.name = name
        self.log = log
        self.stop_signal = stop
        # The kernel ends it should we be killed.
        command = ["setpriv", f"--pdeathsig={killed.name[3:]}", *drop, *command]
        with log.open("a") as out:
            self.popen = subprocess.Popen(
                command, cwd="/", env=env, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def check(self):
        if self.popen.poll() is not None:
            raise Failure(f"{self.name} ended with {self.popen.returncode}:\n{tail(self.log)}")

    def ask_to_stop(self):
        if self.popen.poll() is None:
            self.popen.send_signal(self.stop_signal)

    def stop(self):
        """Its exit status, once it is gone."""
        self.ask_to_stop()
        try:
            return self.popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            return "none: it had to be killed"


class Postgres:
    """A private server: a Unix socket in its own folder, and nothing else."""

    def __init__(self, folder):
        self.dir = folder / "pg"
        self.dir.mkdir(mode=0o755)
        self.process = None
        self.log = folder / "postgres.log"
        self.drop = self._drop_root()
        if len(str(self.dir / ".s.PGSQL.5432")) > SOCKET_MAX:
            raise Failure(f"{self.dir} is too long a name for a socket: set TMPDIR")
        found = glob.glob("/usr/lib/postgresql/*/bin")
        if not found:
            raise Failure("no PostgreSQL server: install the package postgresql")
        self.bin = Path(max(found, key=lambda path: int(path.split("/")[-2])))

    def _drop_root(self):
        """PostgreSQL refuses root, so it gets an ordinary user's rights then."""
        if os.geteuid() != 0:
            return []
        for name in ("postgres", "nobody"):
            try:
                user = pwd.getpwnam(name)
            except KeyError:
                continue
            os.chown(self.dir, user.pw_uid, user.pw_gid)
            return [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        raise Failure("root may not run PostgreSQL, and no ordinary user is here")

    def start(self):
        data = self.dir / "data"
        self._run(["setpriv", "--pdeathsig=KILL", *self.drop, str(self.bin / "initdb"),
                   "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8",
                   "--locale=C.UTF-8", "--no-sync"])
        self.process = Process(
            "PostgreSQL",
            [str(self.bin / "postgres"), "-D", str(data), "--listen_addresses=",
             f"--unix_socket_directories={self.dir}", "--unix_socket_permissions=0700",
             "--max_connections=60", "--log_min_messages=warning"],
            self.log, stop=signal.SIGINT, killed=signal.SIGQUIT, drop=self.drop)
        until(self._answers, "PostgreSQL answers", START_SECONDS)

    def _run(self, command):
        done = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _answers(self):
        self.process.check()
        return subprocess.run([str(self.bin / "pg_isready"), "-q", "-h", str(self.dir)],
                              check=False).returncode == 0

    def conninfo(self, database):
        return f"host={self.dir} user=postgres dbname={database}"

    def query(self, sql, database="postrider"):
        """The rows, as lists of text."""
        out = self._run([str(self.bin / "psql"), "-X", "-q", "-t", "--csv", "-v",
                         "ON_ERROR_STOP=1", "-d", self.conninfo(database), "-c", sql])
        return list(csv.reader(io.StringIO(out)))


class Program:
    """One of our daemons, started when it says that it is ready, as to systemd."""

    def __init__(self, label, binary, folder, settings):
        self.label = label
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind("")  # the kernel picks an abstract name
        self.notices.setblocking(False)
        self.said = ""
        env = environment(settings)
        env["NOTIFY_SOCKET"] = "@" + self.notices.getsockname()[1:].decode()
        self.process = Process(label, [str(binary)], folder / f"{label}.log", env)

    def wait_ready(self):
        until(self._is_ready, f"{self.label} is ready", START_SECONDS)

    def _is_ready(self):
        self.process.check()
        try:
            while True:
                self.said += self.notices.recv(4096).decode() + "\n"
        except BlockingIOError:
            return "READY=1" in self.said

    @property
    def port(self):
        """Where it listens; None if it does not."""
        found = re.search(r"listening on .*:(\d+)$", self.said, re.MULTILINE)
        return int(found[1]) if found else None


def environment(settings):
    """The settings as a program's environment, with nothing else of ours."""
    kept = ("PATH", "LANG", "LC_ALL", "TZ", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS")
    env = {name: os.environ[name] for name in kept if name in os.environ}
    return {**env, **{f"POSTRIDER_{name.upper()}": str(value)
                      for name, value in settings.items()}}


class Cli:
    """The operator's command."""

    def __init__(self, binary, settings):
        self.binary = binary
        self.env = environment(settings)

    def __call__(self, *words):
        """What it printed as JSON, or else as text."""
        done = subprocess.run([str(self.binary), *words], env=self.env, capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"postrider {' '.join(words)}: {done.stderr}")
        return json.loads(done.stdout) if "--json" in words else done.stdout


class Http:
    """A connection to one of our servers."""

    def __init__(self, port, key=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def call(self, method, path, body=None):
        """Status and body, as bytes."""
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def expect(self, status, method, path, body=None):
        """The body of an answer that must have this status."""
        found, answer = self.call(method, path, body)
        if found != status:
            raise Failure(f"{method} {path}: {found} instead of {status}: "
                          f"{answer[:500].decode(errors='replace')}")
        return answer
