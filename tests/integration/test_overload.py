"""More than it can take: what it refuses, it refuses early, and the others go on."""

import json
import re
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

from .api import Api
from .wait import until

EVENT = {"type": "order.paid", "data": {"n": 1}}
MIB = 1 << 20


class Wire:
    """A client that says exactly what it is told, and no more."""

    def __init__(self, port, source="127.0.0.1"):
        self.socket = socket.create_connection(
            ("127.0.0.1", port), timeout=20, source_address=(source, 0))

    def say(self, *lines, body=b""):
        self.socket.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode() + body)
        return self

    def send(self, octets):
        self.socket.sendall(octets)

    def answer(self):
        """The next answer: its status, headers and JSON."""
        raw = b""
        while b"\r\n\r\n" not in raw:
            got = self.socket.recv(65536)
            assert got, f"it hung up: {raw!r}"
            raw += got
        head, _, body = raw.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        while len(body) < int(headers.get("content-length", 0)):
            body += self.socket.recv(65536)
        return int(status.split()[1]), headers, json.loads(body) if body else None

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def metric(ingest, name):
    text = Api(ingest.port).get("/metrics").body.decode()
    return int(re.search(rf"^postrider_ingest_{name} (\d+)$", text, re.MULTILINE)[1])


def lock_waits(db):
    return db.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                    " AND datname = current_database()")


# -- what is said before the body --

JSON, NDJSON = "Content-Type: application/json", "Content-Type: application/x-ndjson"
KEY, SOME_KEY = "Authorization: Bearer {key}", "Authorization: Bearer some"

HEADS = [
    ("no such route", "POST /v1/nothing", [KEY, JSON], 5000000, 404),
    ("no such method", "DELETE /v1/events", [KEY, JSON], 5000000, 405),
    ("no key", "POST /v1/events", [JSON], 100, 401),
    ("no key for a batch", "POST /v1/events/batch", [NDJSON], 5000000, 401),
    ("another scheme", "POST /v1/events", ["Authorization: Basic eDp5", JSON], 100, 401),
    ("nothing in it", "POST /v1/events", ["Authorization: Bearer ", JSON], 100, 401),
    ("too long a key", "POST /v1/events", ["Authorization: Bearer " + "x" * 300, JSON], 100, 401),
    ("no type", "POST /v1/events", [KEY], 100, 415),
    ("another type", "POST /v1/events/batch", [KEY, JSON], 100, 415),
    ("a coding", "POST /v1/events", [KEY, JSON, "Content-Encoding: gzip"], 100, 415),
    ("too large an event", "POST /v1/events", [SOME_KEY, JSON], 65537, 413),
    ("too large a subscription", "POST /v1/subscriptions", [KEY, JSON], 65537, 413),
    ("too large a batch", "POST /v1/events/batch", [KEY, NDJSON], 8 * MIB + 1, 413),
    ("a body where none belongs", "GET /healthz", [], 65537, 413),
]


def test_a_head_that_says_enough_is_answered_without_the_body(ingest, admin_key):
    for expect in ([], ["Expect: 100-continue"]):
        for name, line, headers, size, status in HEADS:
            with Wire(ingest.port) as wire:
                wire.say(f"{line} HTTP/1.1", "Host: a", f"Content-Length: {size}",
                         *(header.format(key=admin_key) for header in headers), *expect)
                got, answer, body = wire.answer()
            assert (got, answer["connection"]) == (status, "close"), name
            assert body["status"] == status, name
            assert ("allow" in answer) == (status == 405), name
            assert ("www-authenticate" in answer) == (status == 401), name


def test_a_head_that_suits_is_told_to_go_on(ingest, admin_key):
    body = json.dumps(EVENT).encode()
    with Wire(ingest.port) as wire:
        wire.say("POST /v1/events HTTP/1.1", "Host: a", KEY.format(key=admin_key), JSON,
                 f"Content-Length: {len(body)}", "Expect: 100-continue")
        assert wire.answer()[0] == 100
        wire.send(body)
        assert wire.answer()[0] == 202


# -- memory --

def begin_batch(ingest, key, size, source="127.0.0.1"):
    """A batch of one event, all here but for its last octet."""
    frame = b'{"type":"t","data":""}'
    body = frame[:-2] + b"x" * 1000 + frame[-2:]
    body += b" " * (size - len(body))
    wire = Wire(ingest.port, source)
    wire.say("POST /v1/events/batch HTTP/1.1", "Host: a", KEY.format(key=key), NDJSON,
             f"Content-Length: {size}")
    wire.send(body[:-1])
    return wire


def test_large_bodies_together_are_bounded(make_ingest, admin_key):
    ingest = make_ingest(max_batch_bytes=MIB, max_body_bytes_total=2 * MIB)
    first = begin_batch(ingest, admin_key, 65000)
    until(lambda: metric(ingest, "buffered_bytes") == 65536, "the first is here")
    second = begin_batch(ingest, admin_key, MIB)
    until(lambda: metric(ingest, "buffered_bytes") == 65536 + MIB, "the second is here")
    third = begin_batch(ingest, admin_key, MIB)
    status, headers, body = third.answer()
    assert (status, body["status"], headers["retry-after"]) == (503, 503, "1")
    assert metric(ingest, "buffered_bytes") == 65536 + MIB

    # Small ones are taken all the same, and those that were first are finished.
    ingest.api(admin_key).event(1)
    first.send(b" ")
    assert first.answer()[0] == 202
    for wire in (first, second, third):
        wire.close()
    until(lambda: metric(ingest, "buffered_bytes") == 0, "all is given back")


def test_a_stranger_with_slow_bodies_does_not_keep_others_out(make_ingest, admin_key):
    """No key is looked up before the body is here, so it need not be valid."""
    ingest = make_ingest(max_batch_bytes=MIB, max_body_bytes_total=2 * MIB)
    strangers = [begin_batch(ingest, "invalid", MIB) for _ in range(2)]
    until(lambda: metric(ingest, "buffered_bytes") == 2 * MIB, "they have all of it")
    with begin_batch(ingest, admin_key, 65000, "127.0.0.2") as wire:
        wire.send(b" ")
        assert wire.answer()[0] == 202
    assert strangers[0].answer()[0] == 503
    strangers[1].send(b" ")
    assert strangers[1].answer()[0] == 401
    for wire in strangers:
        wire.close()


def test_the_memory_for_bodies_has_to_do_for_two_batches(make_ingest):
    ingest = make_ingest(start=False, max_batch_bytes=MIB, max_body_bytes_total=2 * MIB - 1)
    assert ingest.launch("-n").wait() == 2
    assert "max_body_bytes_total" in ingest.log()


# -- keys --

def test_a_flood_of_wrong_keys_turns_nobody_away(make_ingest, admin_key, db):
    """Six hundred wrong keys wait for one look-up, and so does an admin."""
    ingest = make_ingest(statement_timeout="60s")
    api = ingest.api(admin_key)
    strangers = []
    with db.cluster.connect(db.name) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute("BEGIN; LOCK TABLE postrider.api_key")
        for n in range(600):
            strangers.append(Wire(ingest.port).say(
                "GET /v1/subscriptions HTTP/1.1", "Host: a", f"Authorization: Bearer wrong-{n}"))
        until(lambda: lock_waits(db), "the first look-up waits")
        until(lambda: metric(ingest, "requests") == 601, "all are here")
        admin = pool.submit(api.get, "/v1/subscriptions")
        until(lambda: metric(ingest, "requests") == 602, "so is the admin")
        assert metric(ingest, "queued_queries") <= 1
        blocker.execute("ROLLBACK")
        admin.result().expect(200)
        assert {wire.answer()[0] for wire in strangers} == {401}
    for wire in strangers:
        wire.close()


def test_a_look_up_that_is_lost_leaves_no_doubt(make_ingest, admin_key, db):
    """Nothing is posted before the key is known: so it is 503, and not 504."""
    ingest = make_ingest(statement_timeout="60s")
    api = ingest.api(admin_key)
    with db.cluster.connect(db.name) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute("BEGIN; LOCK TABLE postrider.api_key")
        posted = pool.submit(api.post, "/v1/events", EVENT)
        until(lambda: lock_waits(db), "the look-up waits")
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                   " WHERE wait_event_type = 'Lock' AND datname = current_database()")
        answer = posted.result()
        assert answer.expect(503)["status"] == 503
        assert answer.headers["Retry-After"] == "1"
        blocker.execute("ROLLBACK")
    until(lambda: api.post("/v1/events", EVENT).status == 202, "keys are looked up again")


def test_a_key_that_asks_too_often_is_told_when_to_come_back(make_ingest, cli, tenant, admin_key):
    """Others are not hindered, nor is what needs no key."""
    ingest = make_ingest(max_requests_per_key=1)
    api = ingest.api(admin_key)
    other = ingest.api(cli.json("key", "create", "--tenant", tenant, "--role", "publisher")["key"])

    def burst():
        with ThreadPoolExecutor(20) as pool:
            return list(pool.map(lambda _: api.post("/v1/events", EVENT), range(40)))

    answers = burst()
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and {answer.status for answer in answers} == {202, 429}
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
    assert refused[0].json["type"] == "/problems/too-many"
    assert other.post("/v1/events", EVENT).status == 202
    assert Api(ingest.port).get("/healthz").status == 200
    until(lambda: api.post("/v1/events", EVENT).status == 202, "it may ask again")


# -- the end --

def test_a_second_signal_ends_it_at_once_and_everybody_hears(make_ingest, admin_key, db):
    """One event is being written, one waits, and a look-up hangs."""
    ingest = make_ingest(statement_timeout="60s", writers=1)
    api = ingest.api(admin_key)
    api.event(1)
    answers = {}

    def ask(name, call, *args):
        thread = threading.Thread(target=lambda: answers.update({name: call(*args)}))
        thread.start()
        return thread

    with db.cluster.connect(db.name) as blocker:
        blocker.execute("BEGIN; LOCK TABLE postrider.event")
        threads = [ask("written", api.post, "/v1/events", EVENT)]
        until(lambda: lock_waits(db) == 1, "the event waits for the lock")
        threads.append(ask("queued", api.post, "/v1/events", EVENT))
        until(lambda: metric(ingest, "queued_events") == 1, "another waits behind it")
        threads.append(ask("asked", api.get, "/v1/events/x"))
        until(lambda: lock_waits(db) == 2, "the desk waits too")
        threads.append(ask("key", Api(ingest.port, "wrong").get, "/v1/subscriptions"))
        until(lambda: metric(ingest, "queued_queries") == 1, "a look-up waits")
        ingest.kill(signal.SIGTERM)
        until(lambda: "stopping" in ingest.log(), "it is stopping")
        assert ingest.is_running()
        ingest.kill(signal.SIGTERM)
        assert ingest.wait(seconds=5) == 0
        blocker.execute("ROLLBACK")
    for thread in threads:
        thread.join()
    assert "stopping at once" in ingest.log()
    assert {name: answer.status for name, answer in answers.items()} == {
        "written": 504, "queued": 503, "asked": 504, "key": 503}
    assert answers["written"].json["id"]
