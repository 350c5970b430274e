"""The tour of README.md runs as it stands, against the demo that it starts."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from .daemons import binary
from .wait import until

PROJECT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(r"^```sh\n(.*?)^```", (PROJECT / "README.md").read_text(),
                    re.DOTALL | re.MULTILINE)


@pytest.fixture
def tour(tmp_path):
    """The file that `scripts/demo --serve` names."""
    out = tmp_path / "demo.out"
    environment = {**os.environ, "POSTRIDER_BIN": str(binary("")), "TMPDIR": "/tmp"}
    environment.pop("POSTRIDER_TEST_DATA", None)
    with out.open("w") as log:
        demo = subprocess.Popen([PROJECT / "scripts" / "demo", "--serve"], env=environment,
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def named():
        assert demo.poll() is None, out.read_text()
        return re.search(r"^ +\. (/.*/env)$", out.read_text(), re.MULTILINE)

    try:
        yield until(named, "the demo names its file", seconds=100)[1]
    finally:
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=60) == 0, out.read_text()


def run(tour, commands):
    done = subprocess.run(["bash", "-ec", f". {tour}\n{commands}"], check=False, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 0, commands + done.stdout + done.stderr
    return done.stdout


def test_every_command_of_the_tour_runs(tour):
    register, post, repeat, asked, batch, waits, dead, seen = [run(tour, b) for b in BLOCKS]
    assert '"secret":"whsec_' in register.replace(" ", "")
    assert '"id":"tour-1"' in post.replace(" ", "")
    assert '"id":"tour-1"' in repeat.replace(" ", "") and '"status":409' in repeat.replace(" ", "")
    assert '"openapi": "3.1' in asked and "Nothing was done" in asked
    assert "valve-" not in batch or '"id"' in batch
    assert "tour-1" in waits and "valve-7" in waits
    assert "HTTP status 422" in dead and "/never" in dead
    assert '"order_violations":0' in seen.replace(" ", "") and "postrider" in seen
