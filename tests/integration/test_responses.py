"""What a receiver answers, through the real dispatcher: bounded, told, never mistaken."""

import gzip

import pytest

from .wait import until
from .wire import OK, Wire

FAST = {"retry_base_ms": 50, "retry_cap_ms": 100, "timeout_ms": 15000, "max_attempts": 1}


@pytest.fixture
def make_wire():
    made = []

    def make(answer=None):
        made.append(Wire(answer))
        return made[-1]

    yield make
    for wire in made:
        wire.close()


def endless(first, more):
    """Say `first`, then `more` until the client has had enough."""
    def answer(sock, _):
        sock.sendall(first)
        while True:
            sock.sendall(more)
    return answer


def drip(first, pause):
    """Say `first`, then an octet now and then until the client has had enough."""
    def answer(sock, _):
        sock.sendall(first)
        sock.settimeout(pause)
        while True:
            try:
                if not sock.recv(1):
                    return True
            except TimeoutError:
                sock.sendall(b"x")
    return answer


def says(text, close=False):
    def answer(sock, _):
        sock.sendall(text)
        return close
    return answer


BOMB = gzip.compress(gzip.compress(bytes(50_000_000), 9), 9)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

ANSWERS = {
    "a drip in the body": (drip(b"HTTP/1.1 200 OK\r\n\r\n", 0.05), "timed_out", 200, "reading"),
    "a drip in the headers": (drip(b"HTTP/1.1 200 OK\r\nX: ", 0.05), "timed_out", 200, "reading"),
    "headers without end": (endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 99),
                            "broken", 200, "header"),
    "1xx without end": (endless(b"", b"HTTP/1.1 103 Early\r\n\r\n"), "broken", 103, "1xx"),
    "a body without end": (endless(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 4096),
                           "broken", 200, "body"),
    "a gzip bomb": (says(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: "
                         + str(len(BOMB)).encode() + b"\r\n\r\n" + BOMB), "answered", 200, None),
    "bad chunks": (says(CHUNKED + b"zz\r\n"), "broken", 200, "chunked"),
    "cut in the middle": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", True),
                          "broken", 200, ""),
    "HTTP/0.9": (says(b"<h1>hello</h1>", True), "broken", None, "0.9"),
    "a NUL in a header": (says(b"HTTP/1.1 200 OK\r\nX: \0\r\n\r\n"), "broken", 200, "Nul"),
    "a NUL in the body": (says(b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\n\0\xff\xfe"),
                          "answered", 500, None),
    "two lengths": (says(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"),
                    "broken", 200, "Content-Length"),
    "999": (says(b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"), "answered", 999, None),
    "101": (says(b"HTTP/1.1 101 Switch\r\n\r\n"), "broken", 101, "101"),
    "a redirect": (says(b"HTTP/1.1 307 There\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
                   "answered", 307, None),
}


def test_every_answer_has_its_end_on_record(api, dispatch, db, make_wire):
    wires = {name: make_wire(answer) for name, (answer, *_) in ANSWERS.items()}
    ids = {}
    for name, wire in wires.items():
        limit = 700 if ANSWERS[name][1] == "timed_out" else 15000
        ids[api.subscribe(wire.url(), **{**FAST, "timeout_ms": limit})["id"]] = name
    api.event({"n": 1})
    rows = until(
        lambda: (found := db.rows("SELECT subscription_id::text, ended, a.status, reason"
                                  " FROM postrider.attempt a JOIN postrider.delivery"
                                  " ON id = delivery_id")) and len(found) == len(ids) and found,
        "all are on record", seconds=20)
    for id, *row in rows:
        name = ids[id]
        _, ended, status, reason = ANSWERS[name]
        assert row[:2] == [ended, status], (name, row)
        assert row[2] is None if reason is None else reason in row[2], (name, row)
        assert len(wires[name].requests) == 1, name


def test_a_second_answer_is_not_the_next_requests(api, make_dispatch, db, make_wire):
    """The first request is answered twice; the second, on its own, with 500."""
    wire = make_wire(lambda sock, n: sock.sendall(
        OK + OK if n == 1 else b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"))
    api.subscribe(wire.url(), **FAST)
    make_dispatch()
    for n in range(2):
        api.event({"n": n}, asset="same")
    until(lambda: db.value("SELECT count(*) FROM postrider.attempt") == 2, "both are on record")
    assert db.rows("SELECT status FROM postrider.attempt ORDER BY delivery_id") == [(200,), (500,)]


def test_an_attempt_is_one_request_when_a_used_connection_dies(
        api, make_dispatch, db, make_wire):
    """Every second request is read, and its connection closed: libcurl would send it again."""
    def answer(sock, n):
        if n % 2 == 0:
            return True
        sock.sendall(OK)
        return False

    wire = make_wire(answer)
    api.subscribe(wire.url(), **{**FAST, "max_attempts": 5})
    make_dispatch()
    for n in range(10):
        api.event({"n": n}, asset="same")
    until(lambda: db.value("SELECT count(*) FROM postrider.deliveries"
                           " WHERE state = 'delivered'") == 10, "all are delivered")
    attempts = db.rows("SELECT ended, count(*) FROM postrider.attempt GROUP BY 1 ORDER BY 1")
    assert attempts == [("answered", 10), ("broken", len(wire.requests) - 10)]
    tries = [request.head for request in wire.requests]
    assert len(set(tries)) == len(tries) == db.value("SELECT count(*) FROM postrider.attempt")
    assert wire.connections < len(wire.requests), "no connection was used again"
