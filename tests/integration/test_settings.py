"""Settings that cannot work together stop a program at its start, with the reason."""

import subprocess

import pytest

from .daemons import Dispatch, Ingest, binary, environment

NEEDED = {"database": "host=/nowhere", "secret_key_file": "/nowhere"}


def check(program, settings, descriptors=8192):
    """What `PROGRAM -n` says of them, where so many descriptors may be had."""
    return subprocess.run(
        ["prlimit", f"--nofile={descriptors}:{descriptors}", str(binary(program.name)), "-n"],
        env=environment({**NEEDED, **settings}), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=20, check=False)


REFUSED = [
    (Dispatch, {"retention_payload": "59m"}, "retention_payload: want at least 1h"),
    (Dispatch, {"retention_payload": "31d"}, "retention_log: want at least retention_payload"),
    (Dispatch, {"retention_payload": "0s"}, "retention_log: want at least retention_payload"),
    (Dispatch, {"retention_log": "6d"}, "retention_log: want at least retention_payload"),
    (Dispatch, {"max_in_flight": 0}, "max_in_flight"),
    (Dispatch, {"batch": 0}, "batch"),
    (Dispatch, {"lease_margin": "99ms"}, "lease_margin"),
    (Dispatch, {"log_level": "loud"}, "log_level"),
    (Ingest, {"writers": 0}, "writers"),
    (Ingest, {"max_connections": 0}, "max_connections"),
    (Ingest, {"max_connections_per_address": -1}, "max_connections_per_address"),
    (Ingest, {"max_requests_per_connection": 0}, "max_requests_per_connection"),
    (Ingest, {"max_requests_per_key": 1000001}, "max_requests_per_key"),
    (Ingest, {"idle_timeout": "0s"}, "idle_timeout"),
    (Ingest, {"listen_address": "10.0.0.1"}, "plain_http"),
    (Ingest, {"tls_key": "/nowhere"}, "belong together"),
    (Ingest, {"max_body_bytes_total": 16777215},
     "max_body_bytes_total: want at least twice"),
    (Ingest, {"max_queued_bytes": 37748735}, "max_queued_bytes: want at least four times"),
    (Ingest, {"max_queued_bytes": 1048576, "max_batch_bytes": 65536},
     "max_queued_bytes: want at least four times"),
]


@pytest.mark.parametrize("program, settings, words", REFUSED)
def test_a_program_does_not_start_with(program, settings, words):
    done = check(program, settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


TAKEN = [
    (Dispatch, {}),
    (Dispatch, {"retention_payload": "1h", "retention_log": "1h"}),
    (Dispatch, {"retention_log": "0s"}),
    (Dispatch, {"retention_payload": "0s", "retention_log": "0s"}),
    (Dispatch, {"max_in_flight": 1, "batch": 1000}),
    (Dispatch, {"poll": "1h", "lease_margin": "100ms", "shutdown_grace": "0s"}),
    (Ingest, {}),
    (Ingest, {"max_queued_bytes": 37748736}),
    (Ingest, {"max_queued_bytes": 4456448, "max_batch_bytes": 65536}),
]


@pytest.mark.parametrize("program, settings", TAKEN)
def test_a_program_takes(program, settings):
    done = check(program, settings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("program, setting, n", [(Dispatch, "max_in_flight", 292),
                                                 (Ingest, "max_connections", 438)])
def test_each_connection_needs_a_descriptor(program, setting, n):
    """Of a dispatcher's there are half as many again that are kept for the next request."""
    settings = {setting: n}
    assert check(program, settings, 502).returncode == 0
    done = check(program, settings, 501)
    assert done.returncode == 2
    assert f"{setting}: 438 connections need 502 descriptors" in done.stderr
    assert "may have 501" in done.stderr
