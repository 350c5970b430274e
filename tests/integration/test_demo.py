"""The demo shows what it says, fails when it must, and leaves nothing behind."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from .api import Api
from .daemons import binary
from .wait import until

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"


class Demo:
    """One run, in a folder for its temporary files."""

    def __init__(self, folder, *args, bin_folder=None):
        self.folder = folder
        self.output = folder.parent / "demo.out"
        env = {**os.environ, "TMPDIR": str(folder),
               "POSTRIDER_BIN": str(bin_folder or binary(""))}
        with self.output.open("w") as out:
            self.process = subprocess.Popen([DEMO, *args], env=env, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL)

    def said(self):
        return self.output.read_text()

    def wait(self):
        return self.process.wait(timeout=200)

    def says(self, text):
        def is_there():
            assert self.process.poll() is None, self.said()
            return text in self.said()
        until(is_there, f"the demo says {text!r}", seconds=120)

    def processes(self):
        """Whatever runs with this demo's folder in its command line or environment."""
        found = []
        for proc in Path("/proc").iterdir():
            try:
                seen = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
            except (OSError, NotADirectoryError):
                continue
            if str(self.folder).encode() in seen:
                found.append(proc.name)
        return found


@pytest.fixture
def folder():
    """Short, since a socket's address is in it, and open to PostgreSQL's user."""
    made = subprocess.run(["mktemp", "-d", "/tmp/demo.XXXXXX"], check=True, text=True,
                          capture_output=True).stdout.strip()
    path = Path(made) / "t"
    Path(made).chmod(0o711)
    path.mkdir(mode=0o711)
    yield path
    subprocess.run(["rm", "-r", made], check=True)


@pytest.fixture
def start(folder):
    demos = []

    def make(*args, **how):
        demos.append(Demo(folder, *args, **how))
        return demos[-1]

    yield make
    for demo in demos:
        if demo.process.poll() is None:
            demo.process.kill()
            demo.process.wait()


def assert_nothing_is_left(demo):
    assert demo.processes() == []
    assert list(demo.folder.iterdir()) == []


def figure(demo, name):
    """What the demo found for a figure."""
    found = re.search(rf"^  {re.escape(name)} +(\d+) +(\d+)  ok$", demo.said(), re.MULTILINE)
    assert found, demo.said()
    return int(found[1])


def test_it_shows_the_main_job(start):
    demo = start()
    assert demo.wait() == 0, demo.said()
    assert figure(demo, "deliveries made") == 37
    assert figure(demo, "delivered") == 36
    assert figure(demo, "dead") == 1
    assert figure(demo, "attempts") == 49
    assert figure(demo, "requests at /response-loss") == 24
    assert figure(demo, "effects at /response-loss") == 12
    assert figure(demo, "order violations") == 0
    if "POSTRIDER_TEST_DATA" in os.environ:
        assert figure(demo, "data the same, byte for byte") == figure(demo, "events received")
    else:
        assert "skipped" in demo.said()
    assert_nothing_is_left(demo)


def test_it_serves_until_it_is_stopped(start):
    demo = start("--serve", "--data", "/nonexistent")
    demo.says("It goes on until Ctrl-C")
    key, port = (re.search(pattern, demo.said())[1]
                 for pattern in (r"key +(pr_\S+)", r"ingest +http://127.0.0.1:(\d+)"))
    Api(int(port), key).event({"bar": 6})
    demo.process.send_signal(signal.SIGINT)
    assert demo.wait() == 0, demo.said()
    assert_nothing_is_left(demo)


def test_stopped_in_the_middle_it_leaves_nothing(start):
    demo = start()
    demo.says("Four endpoints")
    demo.process.send_signal(signal.SIGTERM)
    assert demo.wait() != 0
    assert_nothing_is_left(demo)


def test_a_program_that_does_not_start_fails_it(start, folder):
    broken = folder.parent / "bin"
    broken.mkdir()
    for name in ("postrider", "postrider-ingest", "postrider-receiver"):
        (broken / name).symlink_to(binary(name))
    dispatch = broken / "postrider-dispatch"
    dispatch.write_text("#!/bin/sh\necho cannot start >&2\nexit 1\n")
    dispatch.chmod(0o755)
    demo = start(bin_folder=broken)
    assert demo.wait() == 1
    assert "cannot start" in demo.said()
    assert_nothing_is_left(demo)


def test_a_figure_that_is_off_fails_it(start, folder):
    changed = folder.parent / "bin"
    changed.mkdir()
    for name in ("postrider", "postrider-ingest", "postrider-dispatch"):
        (changed / name).symlink_to(binary(name))
    receiver = changed / "postrider-receiver"
    # It knows no secret, so it refuses all that comes.
    receiver.write_text(f"#!/bin/sh\nPOSTRIDER_SECRETS_FILE= exec {binary('postrider-receiver')}\n")
    receiver.chmod(0o755)
    demo = start("--data", "/nonexistent", bin_folder=changed)
    assert demo.wait() == 1, demo.said()
    assert "WRONG" in demo.said()
    assert_nothing_is_left(demo)
