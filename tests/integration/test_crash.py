"""Processes, connections and the server itself may die; nothing accepted is lost."""

import signal
import threading

from .wait import until

FAST = {"retry_base_ms": 10, "retry_cap_ms": 50, "timeout_ms": 1000, "max_attempts": 50}
SETTINGS = {"lease_margin": "1s", "poll": "100ms", "statement_timeout": "2s"}


def delivered(db):
    return db.value("SELECT count(*) FROM postrider.deliveries WHERE state = 'delivered'")


def post_until(api, stop, accepted):
    """Post events, and note the ids of those that were accepted."""
    n = 0
    while not stop.is_set():
        n += 1
        try:
            answer = api.post("/v1/events", {"id": f"e{n}", "type": "t", "data": n,
                                             "asset": f"a{n % 5}"})
        except OSError:
            continue
        if answer.status in (200, 202):
            accepted.append(f"e{n}")


def all_delivered(db, accepted):
    return until(
        lambda: set(accepted) <= {i for i, in db.rows(
            "SELECT event_id FROM postrider.deliveries WHERE state = 'delivered'")},
        "all that was accepted is delivered", seconds=60)


def test_connections_that_are_cut_lose_nothing(api, make_dispatch, db, endpoint):
    api.subscribe(endpoint.url, **FAST)
    make_dispatch(**SETTINGS)
    make_dispatch(**SETTINGS)
    stop, accepted = threading.Event(), []
    poster = threading.Thread(target=post_until, args=(api, stop, accepted))
    poster.start()
    try:
        for n in range(1, 6):
            until(lambda: len(accepted) >= 40 * n, f"{40 * n} are accepted", seconds=30)
            db.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                    " application_name LIKE 'postrider%%' AND datname = current_database()")
    finally:
        stop.set()
        poster.join()
    all_delivered(db, accepted)


def test_a_crash_of_the_server_loses_nothing(api, make_dispatch, make_ingest, cluster, db,
                                             endpoint):
    """fsync is off, but the machine goes on: what was committed is there."""
    api.subscribe(endpoint.url, **FAST)
    dispatch = make_dispatch(**SETTINGS)
    stop, accepted = threading.Event(), []
    poster = threading.Thread(target=post_until, args=(api, stop, accepted))
    poster.start()
    try:
        until(lambda: len(accepted) >= 100, "100 are accepted", seconds=30)
        db.close()
        cluster.stop(signal.SIGQUIT)
        before = len(accepted)
        cluster.start()
        db.connection = cluster.connect(db.name)
        until(lambda: len(accepted) >= before + 100, "100 more are accepted", seconds=30)
    finally:
        stop.set()
        poster.join()
    all_delivered(db, accepted)
    assert dispatch.is_running()
    assert dispatch.log().count("database is away") < 10, "the log is bounded"


def test_a_killed_ingest_keeps_what_it_answered(api, ingest, dispatch, db, endpoint):
    api.subscribe(endpoint.url, **FAST)
    stop, accepted = threading.Event(), []
    poster = threading.Thread(target=post_until, args=(api, stop, accepted))
    poster.start()
    until(lambda: len(accepted) >= 100, "100 are accepted", seconds=30)
    ingest.kill(signal.SIGKILL)
    stop.set()
    poster.join()
    all_delivered(db, accepted)
