"""Packages of npm for tests, in the versions of a lock file."""

import shutil
import subprocess

import pytest

# What npm says when it is the network that fails, not what it fetched.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH",
               "EHOSTUNREACH", "ERR_SOCKET_TIMEOUT", "E403", "E404", "E429", "E502", "E503")


def fetch(source, folder):
    """Install what the files of `source` name into `folder`; skips where that cannot be."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node or npm is not installed")
    folder.mkdir(exist_ok=True)
    for path in source.iterdir():
        shutil.copy(path, folder / path.name)
    lock = (source / "package-lock.json").read_text()
    done = folder / "installed"
    if done.exists() and done.read_text() == lock:
        return
    found = subprocess.run(
        ["npm", "ci", f"--cache={folder}/cache", "--fetch-retries=1", "--fetch-timeout=20000"],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=200, check=False)
    if found.returncode != 0 and any(code in found.stdout for code in UNREACHABLE):
        pytest.skip("the packages' registry cannot be reached")
    assert found.returncode == 0, found.stdout
    done.write_text(lock)
