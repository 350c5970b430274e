"""The programs under test, as processes."""

import json
import os
import re
import signal
import socket
import subprocess
from pathlib import Path

from .api import Api
from .wait import until

# All that a program inherits; the rest of our environment is not its business.
INHERITED = ("PATH", "LC_ALL", "TZ", "ASAN_OPTIONS", "LSAN_OPTIONS",
             "TSAN_OPTIONS", "UBSAN_OPTIONS")

END_SECONDS = 20


def binary(name):
    return Path(os.environ["POSTRIDER_BIN"]) / name


def environment(settings, extra=None):
    """The settings as a program's environment: lease=True, POSTRIDER_LEASE=true."""
    env = {name: os.environ[name] for name in INHERITED if name in os.environ}
    for name, value in settings.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        env["POSTRIDER_" + name.upper()] = str(value)
    return {**env, **(extra or {})}


class Notices:
    """The socket on which a program says how it is, as to systemd."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("")  # the kernel picks an abstract name
        self.socket.setblocking(False)
        self.address = "@" + self.socket.getsockname()[1:].decode()
        self.lines = []

    def drain(self):
        while True:
            try:
                self.lines += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.lines

    def close(self):
        self.socket.close()


class Program:
    """One process of one program.  close() sees that it ends well."""

    name = None
    settings = {}

    def __init__(self, folder, settings, extra=None):
        self.settings = {**self.settings, **settings}
        self.extra = extra or {}
        self.log_path = Path(folder) / f"{self.name}-{id(self):x}.log"
        self.notices = None
        self.process = None

    # -- its life --

    def launch(self, *args):
        """Start, without waiting for it to be ready."""
        self.notices = Notices()
        env = environment(
            self.settings, {"NOTIFY_SOCKET": self.notices.address, **self.extra})
        # KILL it if we are killed, or it would outlive the test.
        command = ["setpriv", "--pdeathsig=KILL", str(binary(self.name)), *args]
        with self.log_path.open("a") as log:
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def start(self):
        return self.launch().wait_ready()

    def wait_ready(self):
        until(self._is_ready, f"{self.name} is ready", seconds=30)
        return self

    def _is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}")
        return "READY=1" in self.notices.drain()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self, sig=signal.SIGKILL):
        """Send a signal; after SIGKILL it is gone when this returns."""
        self.process.send_signal(sig)
        if sig == signal.SIGKILL:
            self._forget()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def cont(self):
        self.process.send_signal(signal.SIGCONT)

    def wait(self, seconds=END_SECONDS):
        """Its exit status, once it has ended by itself."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "none: it did not end"
        self._forget()
        return status

    def stop(self):
        """SIGTERM; anything but exit 0 fails the test, a leak under ASan too."""
        if self.process is None:
            return
        self.cont()
        self.process.send_signal(signal.SIGTERM)
        status = self.wait()
        assert status == 0, f"{self.name} ended with {status}"

    def restart(self):
        self.stop()
        return self.start()

    def _forget(self):
        self.process.wait()
        self.process = None
        self.notices.close()

    # -- what it says --

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    @property
    def pid(self):
        return self.process.pid

    @property
    def port(self):
        """Where it listens, as its status line tells."""
        for line in reversed(self.notices.drain()):
            found = re.fullmatch(r"STATUS=listening on .*:(\d+)", line)
            if found:
                return int(found[1])
        raise AssertionError(f"{self.name} did not say where it listens")


class Ingest(Program):
    name = "postrider-ingest"
    settings = {"listen_address": "127.0.0.1", "listen_port": 0,
                "development": True, "log_level": "debug"}

    def api(self, key=None, **how):
        return Api(self.port, key, **how)


class Dispatch(Program):
    name = "postrider-dispatch"
    settings = {"development": True, "log_level": "debug"}


class Receiver(Program):
    name = "postrider-receiver"
    settings = {"listen_address": "127.0.0.1", "listen_port": 0, "log_level": "debug"}

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def receipts(self):
        return Api(self.port).get("/receipts").expect(200)


class Cli:
    """The operator's command, with the settings of one database."""

    def __init__(self, settings):
        self.settings = settings

    def run(self, *args, stdin=None, extra=None):
        """Run to the end; returns subprocess's result, whatever the status."""
        return subprocess.run(
            [str(binary("postrider")), *args], env=environment(self.settings, extra),
            input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60, check=False)

    def __call__(self, *args, **how):
        """Run, insist on exit 0, and return what it printed."""
        done = self.run(*args, **how)
        assert done.returncode == 0, (
            f"postrider {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def json(self, *args, **how):
        return json.loads(self(*args, "--json", **how))
