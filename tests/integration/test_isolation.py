"""Requests that nobody answers cost a bounded share, and give it back."""

import resource
import socket
from pathlib import Path

import pytest

from .wait import until

SUBSCRIPTIONS, EACH = 20, 50
SILENT = SUBSCRIPTIONS * EACH

# Octets of resident memory for a request in flight.  A plain build takes a
# fifth of it; the rest is for sanitizers.
MEMORY_EACH = 100_000

# Beside the requests' own: the database, the loop, libcurl's wake-ups.
DESCRIPTORS_BESIDE = 100


@pytest.fixture
def silent():
    """The port of a server that takes connections and requests, and is silent."""
    with socket.create_server(("127.0.0.1", 0), backlog=2 * SILENT) as server:
        yield server.getsockname()[1]


@pytest.fixture
def besiege(api, make_dispatch, db, silent):
    """Bring the silent requests in flight; returns the dispatcher."""
    def begin(timeout_ms):
        dispatch = make_dispatch(max_in_flight=SILENT + 100, log_level="info")
        for n in range(SUBSCRIPTIONS):
            api.subscribe(f"http://127.0.0.1:{silent}/{n}", event_types=["silent"],
                          max_in_flight=EACH, timeout_ms=timeout_ms, retry_base_ms=60000)
        before = memory(dispatch)
        api.call("POST", "/v1/events/batch", b'{"type":"silent","data":0}\n' * EACH,
                 {"Content-Type": "application/x-ndjson"}).expect(202)
        return dispatch, before
    return begin


def memory(program):
    pages = Path(f"/proc/{program.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def descriptors(program):
    return len(list(Path(f"/proc/{program.pid}/fd").iterdir()))


def database_connections(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND application_name LIKE 'postrider-dispatch%%'")


def test_a_thousand_silent_requests_take_their_share_and_no_more(besiege, api, db, endpoint):
    api.subscribe(endpoint.url, event_types=["healthy"])
    dispatch, before = besiege(timeout_ms=60000)
    until(lambda: descriptors(dispatch) > SILENT, "all are in flight", seconds=60)
    for n in range(20):
        api.event({"n": n}, type="healthy", asset="a")
    until(lambda: len(endpoint.requests) == 20, "the healthy one is served")
    assert db.value("SELECT count(lease_token) FROM postrider.lane"
                    " JOIN postrider.subscription s ON s.id = subscription_id"
                    " WHERE 'silent' = ANY (s.event_types)") == SILENT
    assert database_connections(db) == 2
    assert descriptors(dispatch) < SILENT + DESCRIPTORS_BESIDE
    assert memory(dispatch) - before < SILENT * MEMORY_EACH


def test_what_silent_requests_took_is_given_back(besiege, db):
    dispatch, _ = besiege(timeout_ms=2000)
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt WHERE ended = 'timed_out'")
          >= SILENT, "all have timed out", seconds=60)
    until(lambda: descriptors(dispatch) < DESCRIPTORS_BESIDE, "their connections are closed")
    assert db.value("SELECT count(lease_token) FROM postrider.lane") == 0
