"""All of Postrider on this machine: one database, and every program beside it."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

from programs import Cli, Http, Postgres, Program
from show import say

DISPATCHERS = 3

# What ends the demo early.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stack:
    """Use it as a context manager: what it started ends, whatever happens."""

    def __init__(self):
        self.bin = Path(os.environ["POSTRIDER_BIN"]).resolve()
        self.folder = Path(tempfile.mkdtemp(prefix="postrider-demo-",
                                            dir=os.environ.get("TMPDIR") or "/tmp"))
        self.folder.chmod(0o711)  # PostgreSQL's user passes through
        self.postgres = None
        self.programs = []
        self.secrets = self.folder / "receiver.secrets"
        self.secrets.touch(mode=0o600)
        self.key = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in SIGNALS:  # what follows must not be cut short
            signal.signal(name, signal.SIG_IGN)
        try:
            # The dispatchers still record what they have sent, so PostgreSQL
            # goes last.
            for program in self.programs:
                program.process.ask_to_stop()
            for program in self.programs:
                program.process.stop()
            if self.postgres and self.postgres.process:
                self.postgres.process.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        self.start_postgres()
        settings = self.migrate()
        self.start_programs(settings)

    def start_postgres(self):
        self.postgres = Postgres(self.folder)
        self.postgres.start()
        version, = self.postgres.query("SHOW server_version", "postgres")[0]
        say(f"  PostgreSQL {version}, its own, in {self.postgres.dir}")
        for name in ("postrider", "receiver"):
            self.postgres.query(f"CREATE DATABASE {name}", "postgres")

    def migrate(self):
        """Schema, tenant and keys; returns what every program has to know."""
        key_file = self.folder / "secret.key"
        settings = {"database": self.postgres.conninfo("postrider"),
                    "secret_key_file": key_file}
        cli = Cli(self.bin / "postrider", settings)
        cli("keygen", str(key_file))
        done = cli("migrate", "--json")
        say(f"  schema: {', '.join(step['name'] for step in done)}")
        cli("tenant", "create", "waterworks", "--json")
        made = cli("key", "create", "--tenant", "waterworks", "--role", "admin",
                   "--name", "demo", "--json")
        say(f"  tenant {made['tenant']}, with a key of role {made['role']}")
        self.key = made["key"]
        return {**settings, "development": "true"}

    def start_programs(self, settings):
        self._launch("receiver", "postrider-receiver", {
            "database": self.postgres.conninfo("receiver"),
            "listen_port": 0, "secrets_file": self.secrets})
        self._launch("ingest", "postrider-ingest", {**settings, "listen_port": 0})
        for n in range(1, DISPATCHERS + 1):
            self._launch(f"dispatch-{n}", "postrider-dispatch", settings)
        for program in self.programs:
            program.wait_ready()
            where = f" on 127.0.0.1:{program.port}" if program.port else ""
            say(f"  {program.label}{where}, process {program.process.popen.pid}")
        receiver, ingest = self.programs[:2]
        self.api = Http(ingest.port, self.key)
        self.receiver = Http(receiver.port)

    def _launch(self, label, binary, settings):
        self.programs.append(Program(label, self.bin / binary, self.folder, settings))

    def check(self):
        """Every process is still there."""
        for program in self.programs:
            program.process.check()

    def add_secret(self, path, secret):
        """Tell the receiver how to verify what comes to `path`."""
        fresh = self.secrets.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(self.secrets.read_text() + f"{path} {secret}\n")
        fresh.replace(self.secrets)
