"""Requests as strangers send them: each gets one answer, and smuggles nothing."""

import json
import os
import re
import secrets
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .wait import until

DATA = Path(os.environ.get("POSTRIDER_TEST_DATA", "/nonexistent")) / "http/requests.jsonl"

HEAD = ("POST /v1/events HTTP/1.1\r\nHost: {HOST}:{PORT}\r\nAuthorization: Bearer {KEY}\r\n"
        "Content-Type: application/json\r\n")
NEXT = HEAD + "Content-Length: {#2}\r\n\r\n{<2}{BODY2}{>2}"

# Name, bytes, what has to come; as the rows of the larger table.
ROWS = [
    ("plain", HEAD + "Content-Length: {#1}\r\n\r\n{<1}{BODY}{>1}", "2xx"),
    ("chunked", HEAD + "Transfer-Encoding: chunked\r\n\r\n{$1}\r\n{<1}{BODY}{>1}\r\n0\r\n\r\n",
     "2xx"),
    ("chunked with an extension",
     HEAD + "Transfer-Encoding: chunked\r\n\r\n{$1};a=b\r\n{<1}{BODY}{>1}\r\n0\r\n\r\n", "2xx"),
    ("no length", HEAD + "\r\n{BODY}", "4xx"),
    ("both lengths",
     HEAD + "Content-Length: {#1}\r\nTransfer-Encoding: chunked\r\n\r\n{<1}{BODY}{>1}", "4xx"),
    ("two lengths",
     HEAD + "Content-Length: {#1}\r\nContent-Length: 7\r\n\r\n{<1}{BODY}{>1}", "4xx"),
    ("a length with a plus", HEAD + "Content-Length: +{#1}\r\n\r\n{<1}{BODY}{>1}", "4xx"),
    ("a space before the colon", HEAD + "Content-Length : {#1}\r\n\r\n{<1}{BODY}{>1}", "4xx"),
    ("a length that is negative", HEAD + "Content-Length: -1\r\n\r\n{BODY}", "4xx"),
    ("a length that is huge", HEAD + "Content-Length: 99999999999999999999\r\n\r\n{BODY}", "4xx"),
    ("another coding", HEAD + "Transfer-Encoding: xchunked\r\n\r\n{BODY}", "4xx"),
    ("identity", HEAD + "Transfer-Encoding: identity\r\n\r\n{BODY}", "4xx"),
    ("a chunk size in 0x", HEAD + "Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n0\r\n\r\n",
     "4xx"),
    ("a chunk size of endless digits",
     HEAD + "Transfer-Encoding: chunked\r\n\r\n{*40000:0}", "4xx"),
    ("bare line feeds",
     "POST /v1/events HTTP/1.1\nHost: {HOST}:{PORT}\nContent-Length: 2\n\n{}", "4xx"),
    ("no host", "GET /healthz HTTP/1.1\r\n\r\n", "4xx"),
    ("two hosts", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "4xx"),
    ("a folded header", "GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", "4xx"),
    ("a NUL in a header", "GET /healthz HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", "4xx"),
    ("a huge header", "GET /healthz HTTP/1.1\r\nHost: a\r\nX: {*20000:x}\r\n\r\n", "4xx"),
    ("a long path", "GET /{*20000:x} HTTP/1.1\r\nHost: a\r\n\r\n", "4xx"),
    ("another version", "GET /healthz HTTP/2.0\r\nHost: a\r\n\r\n", "4xx"),
    ("no HTTP", "hello\r\n\r\n", "4xx-or-close"),
    ("a body that does not come", HEAD + "Content-Length: 100\r\n\r\n{BODY}", "4xx-or-close"),
]


class Row:
    """One row: its bytes made for one server, and what became of it."""

    def __init__(self, row, ingest, key):
        self.row = row
        self.name = row["name"]
        self.event = "probe-" + secrets.token_hex(8)
        self.smuggled = "probe-" + secrets.token_hex(8)
        self.uses_event = re.search(r"\{EVENT\}|\{BODY[}:]", row["bytes"])
        self.is_head = row["bytes"].startswith("HEAD ")
        self.port = ingest.port
        self.key = key
        self.parts = self._parts(row["bytes"])
        self.answers, self.is_closed = [], False

    def _parts(self, text):
        """[(bytes, ms to wait afterwards)]"""
        body = '{"id":"%s","type":"probe.http","data":{"n":1}}'
        one, two = body % self.event, body % self.smuggled
        for mark, value in (("{HOST}", "127.0.0.1"), ("{PORT}", str(self.port)),
                            ("{KEY}", self.key), ("{EVENT}", self.event),
                            ("{SMUGGLED}", self.smuggled), ("{BODY}", one), ("{BODY2}", two)):
            text = text.replace(mark, value)
        text = re.sub(r"\{BODY:(\d*):(\d*)\}",
                      lambda m: one[int(m[1] or 0):int(m[2]) if m[2] else None], text)
        text = re.sub(r"\{\*(\d+):([^}]*)\}", lambda m: m[2] * int(m[1]), text)
        return self._waits(self._regions(text))

    @staticmethod
    def _regions(text):
        """Measure what stands between the marks, then put the numbers in."""
        marks = re.compile(r"\{[<>]\d\}")
        waits = re.compile(r"\{WAIT:\d+\}")
        counts = re.compile(r"\{([#$])(\d)([+-]\d+)?\}")
        sizes = {}
        for digit in set(re.findall(r"\{<(\d)\}", text)):
            inside = text.split("{<%s}" % digit, 1)[1].split("{>%s}" % digit, 1)[0]
            sizes[digit] = len(waits.sub("", counts.sub("", marks.sub("", inside))))

        def number(match):
            n = sizes[match[2]] + int(match[3] or 0)
            return f"{n:x}" if match[1] == "$" else str(n)

        return marks.sub("", counts.sub(number, text))

    @staticmethod
    def _waits(text):
        pieces = re.split(r"\{WAIT:(\d+)\}", text)
        waits = [int(ms) for ms in pieces[1::2]] + [0]
        return [(piece.encode("latin-1"), ms) for piece, ms in zip(pieces[::2], waits)]

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=15) as wire:
            try:
                for piece, ms in self.parts:
                    wire.sendall(piece)
                    wire.settimeout(max(ms / 1000, 0.001))
                    self._read(wire, ms / 1000)
                if self.row.get("after") == "close":
                    return self
                if self.row.get("after") == "shutdown":
                    wire.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it may answer and close before it has read all
            self._read(wire, self.row.get("timeout", 15), self.row.get("responses", 1))
        return self

    def _read(self, wire, seconds, wanted=99):
        """Read until enough answers are here, or the connection ends."""
        deadline = time.monotonic() + seconds
        self.raw = getattr(self, "raw", b"")
        while not self.is_closed and time.monotonic() < deadline:
            try:
                wire.settimeout(max(0.001, deadline - time.monotonic()))
                got = wire.recv(65536)
            except TimeoutError:
                break
            except OSError:
                got = b""
            self.is_closed = got == b""
            self.raw += got
            self.answers = parse(self.raw, self.is_head)
            if len(self.answers) >= wanted:
                # What else comes, comes at once.
                deadline = min(deadline, time.monotonic() + 0.3)
                wanted = 99

    # -- what is to be said against it --

    def faults(self, exists):
        row, statuses = self.row, [status for status, _ in self.answers]
        if row.get("after") == "close":
            return
        expect, allow = row["expect"], row.get("allow", [])
        fine = {"2xx": lambda s: 200 <= s < 300,
                "4xx": lambda s: 400 <= s < 500 or s in allow}
        kinds = {"2xx": ["2xx"], "4xx": ["4xx"], "4xx-or-close": ["4xx"],
                 "2xx-or-4xx": ["2xx", "4xx"], "close": []}[expect]
        want = row.get("responses", 1)
        if not statuses:
            if "close" not in expect or not self.is_closed:
                yield "no answer" if self.is_closed else "it hangs"
        elif len(statuses) < want:
            yield f"{len(statuses)} answers of {want}"
        for status in statuses[:want]:
            if not any(fine[kind](status) for kind in kinds):
                yield f"{status} instead of {expect}"
        for rule in row.get("must_not", []):
            yield from self._broken(rule, statuses, exists)
        if "second_request_processed" in row.get("must", []) and self.smuggled not in exists:
            yield "the second request was not processed"
        if self.uses_event and statuses:
            took = 200 <= statuses[0] < 300
            if took != (self.event in exists):
                yield f"{statuses[0]}, and the event is " + ("missing" if took else "there")

    def _broken(self, rule, statuses, exists):
        word, _, text = rule.partition(":")
        if word == "second_request_processed" and self.smuggled in exists:
            yield "smuggled"
        elif word == "stays_open" and not self.is_closed:
            yield "it stays open"
        elif word == "101" and 101 in statuses:
            yield "101"
        elif word == "body_contains" and any(
                text.encode() in body.partition(b"\r\n\r\n")[2] for _, body in self.answers):
            yield rule
        elif word == "header_contains" and any(
                text.encode() in body.partition(b"\r\n\r\n")[0] for _, body in self.answers):
            yield rule


def parse(raw, is_head):
    """The final answers in what came: (status, all its bytes).  The first has no
    body if HEAD asked for it."""
    answers = []
    while raw:
        head, end, rest = raw.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        if not end or not found:
            break
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        n = int(length[1]) if length and not (is_head and not answers) else 0
        if len(rest) < n:
            break
        if int(found[1]) >= 200:
            answers.append((int(found[1]), head + end + rest[:n]))
        raw = rest[n:]
    return answers


def judge(rows, ingest, db, key, workers=16):
    with ThreadPoolExecutor(workers) as pool:
        done = list(pool.map(lambda row: Row(row, ingest, key).run(), rows))
    exists = {row[0] for row in db.rows("SELECT event_id FROM postrider.event")}
    wrong = [f"{row.name}: {fault}" for row in done for fault in row.faults(exists)]
    assert ingest.is_running(), "it died"
    assert not wrong, "\n".join(wrong)


def test_our_own_table(ingest, db, admin_key):
    judge([{"name": name, "bytes": text, "expect": expect, "allow": [501, 505],
            "after": "shutdown"} for name, text, expect in ROWS], ingest, db, admin_key)


@pytest.mark.skipif(not DATA.is_file(), reason="POSTRIDER_TEST_DATA has no http/requests.jsonl")
def test_the_large_table(ingest, db, admin_key):
    rows = [json.loads(line) for line in DATA.read_text().splitlines()]
    judge(rows, ingest, db, admin_key, workers=64)


def test_a_pipeline_is_answered_in_order(ingest, db, admin_key):
    row = {"name": "two", "expect": "2xx", "responses": 2, "must": ["second_request_processed"],
           "bytes": HEAD + "Content-Length: {#1}\r\n\r\n{<1}{BODY}{>1}" + NEXT}
    judge([row], ingest, db, admin_key)


def test_errors_of_the_server_itself_are_problems_too(ingest):
    with socket.create_connection(("127.0.0.1", ingest.port), timeout=10) as wire:
        wire.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        raw = b""
        while got := wire.recv(65536):
            raw += got
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    assert json.loads(body)["status"] == 400


def test_a_client_that_goes_away_leaves_its_event(ingest, db, admin_key):
    """Nobody waits for the answer any more: the event is kept all the same."""
    row = Row({"name": "gone", "expect": "2xx", "after": "close",
               "bytes": HEAD + "Content-Length: {#1}\r\n\r\n{<1}{BODY}{>1}"}, ingest, admin_key)
    row.run()
    until(lambda: db.value("SELECT count(*) FROM postrider.event WHERE event_id = %s",
                           (row.event,)), "the event is kept")
