"""What could be used instead, on the same stand: the scripts in peers/, under Node."""

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("peers")


def fetch():
    """Install the packages beside the build; the folder, or None where they cannot be had."""
    if not shutil.which("npm"):
        print("npm is not installed: no peers")
        return None
    folder = Path(os.environ["POSTRIDER_BIN"]).parent / "peers"
    shutil.copytree(SOURCE, folder, dirs_exist_ok=True)
    lock = (SOURCE / "package-lock.json").read_text()
    done = folder / "installed"
    if done.exists() and done.read_text() == lock:
        return folder
    found = subprocess.run(
        ["npm", "ci", f"--cache={folder}/cache", "--fetch-retries=1", "--fetch-timeout=20000"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print(f"npm cannot install the peers: {found.stderr.strip()}")
        return None
    done.write_text(lock)
    return folder


def node(folder):
    """The Node that came with the packages; another's if there is none for this machine."""
    own = folder / "node_modules/.bin/node"
    return str(own) if own.exists() else "node"


def versions(folder):
    found = subprocess.run([node(folder), "--version"], capture_output=True, text=True, check=True)
    packages = json.loads((folder / "package.json").read_text())["dependencies"]
    return {"node": found.stdout.strip(), **packages}


class Script:
    """Runs one of the scripts against a database."""

    def __init__(self, stand, folder, name):
        self.stand, self.folder, self.script = stand, folder, f"{name}.js"

    def _command(self, *args):
        return ["setpriv", "--pdeathsig=KILL", node(self.folder), self.script, *args]

    def _how(self, db):
        return {"cwd": self.folder, "stdin": subprocess.DEVNULL, "text": True, "env": {
            "PATH": os.environ["PATH"], "PGHOST": str(self.stand.cluster.dir),
            "PGUSER": "postgres", "PGDATABASE": db.name, "NODE_ENV": "production"}}

    def run(self, db, *args):
        subprocess.run(self._command(*args), check=True, **self._how(db))

    def launch(self, db, *args):
        return subprocess.Popen(self._command(*args), stdout=subprocess.PIPE, **self._how(db))


class Sender:
    """A peer with a backlog of a shape, its own order kept or not."""

    name = script = jobs = others = None
    how = "send"

    def __init__(self, stand, folder, backlog, is_ordered):
        self.stand = stand
        self.run = Script(stand, folder, self.script)
        self.name = f"{self.name}, ordered" if is_ordered else self.name
        self.template = stand.cluster.create()
        self.run.run(self.template, "fill", json.dumps({
            **dataclasses.asdict(backlog), "ordered": is_ordered}))
        stand.seal(self.template)

    def start(self, db, processes):
        self.processes = [self.run.launch(db, self.how, self.stand.nginx.url)
                          for _ in range(processes)]
        return [process.pid for process in self.processes]

    def is_done(self, db, spares_hot):
        return db.value(f"SELECT NOT EXISTS (SELECT FROM {self.jobs}"
                        f" {self.others if spares_hot else ''})")

    def stop(self):
        for process in self.processes:
            process.kill()
            process.communicate()


class Graphile(Sender):
    name, script = "graphile-worker", "graphile"
    jobs = "graphile_worker._private_jobs j"
    others = ("JOIN graphile_worker._private_job_queues q ON q.id = j.job_queue_id"
              " AND q.queue_name <> 'hot'")


class PgBoss(Sender):
    name, script = "pg-boss", "pgboss"
    jobs = "pgboss.job WHERE state < 'completed'"
    others = "AND singleton_key <> 'hot'"

    def __init__(self, stand, folder, backlog, is_ordered):
        super().__init__(stand, folder, backlog, is_ordered)
        if backlog.front() == backlog.events:
            self.how = "step"


class Api:
    """A peer's API, for ingest.py."""

    batch = 1
    kind = "events"
    key = ""

    def __init__(self, stand, folder, queue, name):
        self.name = name
        self.run = Script(stand, folder, "api")
        self.queue = queue
        self.template = stand.seal(stand.cluster.create())

    def start(self, db):
        self.process = self.run.launch(db, self.queue)
        return self.process.pid, int(self.process.stdout.readline())

    def accepted(self, db):
        return db.value("SELECT count(*) FROM event")

    def shared(self, events):
        return None

    def stop(self):
        self.process.kill()
        self.process.communicate()
