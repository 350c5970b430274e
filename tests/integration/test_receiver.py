"""The receiver judges and misbehaves as its paths say, and forgets nothing it answered."""

import base64
import hashlib
import hmac
import http.client
import itertools
import json
import secrets
import signal
import socket
import threading
import time

import pytest

from .api import Api
from .conftest import programs_key
from .daemons import Receiver
from .wait import never, until

KEY = secrets.token_bytes(32)
SECRET = "whsec_" + base64.b64encode(KEY).decode()

numbers = itertools.count(1)


def sign(key, *parts):
    return hmac.new(key, b".".join(parts), hashlib.sha256)


class Sender:
    """Signs as Standard Webhooks has it, with code of its own."""

    def __init__(self, program):
        self.program = program

    @property
    def port(self):
        return self.program.port

    def headers(self, event_id, body, position=None, attempt=1, key=KEY, at=None, **more):
        at = str(int(time.time() if at is None else at))
        mac = sign(key, event_id.encode(), at.encode(), body).digest()
        headers = {
            "webhook-id": event_id,
            "webhook-timestamp": at,
            "webhook-signature": "v1," + base64.b64encode(mac).decode(),
            "postrider-attempt": str(attempt),
        }
        if position is not None:
            headers["postrider-position"] = str(position)
        headers.update(more)
        return {name: value for name, value in headers.items() if value is not None}

    def post(self, path, event_id=None, body=None, asset="pump-1", **how):
        event_id = event_id or f"evt_{next(numbers)}"
        if body is None:
            body = envelope(event_id, asset)
        return Api(self.port).post(path, body, headers=self.headers(event_id, body, **how))

    def open(self, path, event_id, seconds=20, **how):
        """Send, and leave the answer to the caller."""
        body = envelope(event_id, how.pop("asset", "pump-1"))
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        connection.request("POST", path, body, self.headers(event_id, body, **how))
        return connection

    def path(self, path):
        """What is counted for this path."""
        for counts in Api(self.port).get("/receipts").expect(200)["paths"]:
            if counts["path"] == path:
                return counts
        return None

    def events(self, path, **query):
        more = "".join(f"&{name}={value}" for name, value in query.items())
        return Api(self.port).get(f"/receipts?path={path}&events=1{more}").expect(200)


def envelope(event_id, asset):
    event = {"id": event_id, "type": "pump.inspected", "asset": asset,
             "timestamp": "2026-01-02T03:04:05.678Z", "data": {"n": 1}}
    if asset is None:
        del event["asset"]
    return json.dumps(event).encode()


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    """One receiver for all tests that leave it as it is, with its database."""
    database = cluster.create()
    folder = tmp_path_factory.mktemp("receiver")
    program = Receiver(folder, {"database": database.conninfo,
                                "secrets_file": folder / "secrets"})
    program.start()
    yield program, database
    program.stop()
    database.drop()


@pytest.fixture
def secrets_file(shared):
    return shared[0].settings["secrets_file"]


@pytest.fixture
def records(shared):
    """The database that receipts are kept in."""
    return shared[1]


@pytest.fixture
def sender(request, shared, secrets_file):
    program = shared[0]
    request.node.stash.setdefault(programs_key, []).append(program)
    secrets_file.write_text(f"# every endpoint\n/ {SECRET}\n")
    assert Api(program.port).delete("/receipts").status == 204
    return Sender(program)


@pytest.fixture
def own(programs, empty_db, tmp_path):
    """A sender to a receiver that the test may kill."""
    path = tmp_path / "secrets"
    path.write_text(f"/ {SECRET}\n")
    return Sender(programs(Receiver, {"database": empty_db.conninfo, "secrets_file": path}))


# -- behaviours --


@pytest.mark.parametrize("path, statuses, effects", [
    ("/normal", [200, 200], 1),
    ("/normal/a/b", [200, 200], 1),
    ("/rejected", [422, 422], 0),
    ("/flaky", [503, 503, 200, 200], 1),
    ("/flaky/x?fail=1", [503, 200], 1),
    ("/flaky?fail=0", [200], 1),
    ("/slow?ms=1", [200, 200], 1),
    ("/redirect", [302], 0),
    ("/throttle", [429, 200], 1),
    ("/gone", [410], 0),
    ("/status/418", [418], 0),
    ("/status/204/x", [204, 204], 1),
    ("/status/999", [999], 0),
])
def test_an_endpoint_behaves_as_its_path_says(sender, path, statuses, effects):
    given = [sender.post(path, "evt_x").status for _ in statuses]
    assert given == statuses
    counts = sender.path(path.split("?")[0])
    assert counts["requests"] == len(statuses)
    assert counts["effects"] == effects
    [event] = sender.events(path.split("?")[0])["events"]
    assert event["requests"] == len(statuses)
    if "slow" not in path:
        assert event["statuses"] == statuses


def test_each_event_is_failed_by_itself(sender):
    assert sender.post("/flaky?fail=1", "a").status == 503
    assert sender.post("/flaky?fail=1", "b").status == 503
    assert sender.post("/flaky?fail=1", "a").status == 200
    assert sender.post("/flaky/other?fail=1", "a").status == 503


def test_answers_carry_their_headers(sender):
    assert sender.post("/throttle").headers["Retry-After"] == "1"
    assert sender.post("/redirect").headers["Location"] == "/normal"


@pytest.mark.parametrize("path", [
    "/", "/norma", "/normality", "/status", "/status/", "/status/99", "/status/0200",
    "/status/100", "/flaky?fail=x", "/slow?ms=-1", "/flaky?fail=%00", "/receiptsx",
    "/normal/" + "x" * 1024,
])
def test_what_is_no_endpoint_is_not_found(sender, path):
    assert sender.post(path).status == 404
    assert Api(sender.port).get("/receipts").expect(200)["totals"]["requests"] == 0


def test_an_endpoint_takes_nothing_but_posts(sender):
    answer = Api(sender.port).get("/normal")
    assert answer.status == 405
    assert answer.headers["Allow"] == "POST"


def test_a_lost_response_leaves_the_effect(sender):
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        sender.post("/response-loss", "evt_x")
    assert sender.path("/response-loss")["effects"] == 1
    assert sender.post("/response-loss", "evt_x").status == 200
    assert sender.path("/response-loss")["effects"] == 1
    assert sender.events("/response-loss")["events"][0]["statuses"] == [None, 200]


def test_a_slow_answer_is_noted_when_it_is_given(sender, records):
    connection = sender.open("/slow?ms=300", "evt_x")
    until(lambda: sender.path("/slow"), "the request is kept")
    assert sender.events("/slow")["events"][0]["statuses"] == [None]
    assert sender.path("/slow")["effects"] == 1
    assert connection.getresponse().status == 200
    until(lambda: sender.events("/slow")["events"][0]["statuses"] == [200],
          "the answer is noted")
    late = records.value("SELECT answered_at - arrived_at >= '0.3 s' FROM receiver.request")
    assert late


def test_a_silent_endpoint_keeps_the_connection(sender):
    connection = sender.open("/never", "evt_x", seconds=0.3)
    with pytest.raises(TimeoutError):
        connection.getresponse()
    assert sender.path("/never")["requests"] == 1
    assert sender.path("/never")["effects"] == 0
    connection.close()


def read_some(connection, least):
    """Read the body on until `least` octets of it have come."""
    response = connection.getresponse()
    assert response.status == 200
    seen = 0
    while seen < least:
        seen += len(response.read(65536))
    return seen


def test_an_endless_body_does_not_end_and_is_held_back(sender):
    connection = sender.open("/endless", "evt_x")
    assert read_some(connection, 5_000_000) >= 5_000_000
    pid = sender.program.pid
    before = memory(pid)
    never(lambda: memory(pid) > before + 50_000, "it fills its memory")
    assert sender.post("/normal").status == 200
    connection.close()


def memory(pid):
    """Resident memory in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    raise AssertionError("no VmRSS")


# -- signatures --


def resigned(sender, body, **changes):
    headers = sender.headers("evt_x", body)
    headers.update(changes)
    return {name: value for name, value in headers.items() if value is not None}


@pytest.mark.parametrize("changes, verdict", [
    ({"webhook-signature": None}, "missing"),
    ({"webhook-id": None}, "missing"),
    ({"webhook-timestamp": None}, "missing"),
    ({"webhook-id": "evt_y"}, "wrong"),
    ({"webhook-id": "evt.x"}, "malformed"),
    ({"webhook-timestamp": "now"}, "malformed"),
    ({"webhook-timestamp": "1"}, "expired"),
    ({"webhook-signature": "v1,"}, "wrong"),
    ({"webhook-signature": "v1a,AAAA"}, "wrong"),
    ({"X-Webhook-Signature": "v1=00"}, "missing"),
])
def test_a_request_that_does_not_verify_does_nothing(sender, records, changes, verdict):
    body = envelope("evt_x", "pump-1")
    answer = Api(sender.port).post("/normal", body, headers=resigned(sender, body, **changes))
    assert answer.status == 401
    assert answer.body.decode() == verdict
    assert records.rows("SELECT signature, status, nth, body FROM receiver.request") == [
        (verdict, 401, None, None)]
    counts = sender.path("/normal")
    assert (counts["requests"], counts["effects"], counts["rejected_signatures"]) == (1, 0, 1)
    assert sender.events("/normal")["events"] == []


def test_a_changed_body_does_not_verify(sender):
    body = envelope("evt_x", "pump-1")
    headers = sender.headers("evt_x", body)
    assert Api(sender.port).post("/normal", body + b" ", headers=headers).status == 401
    assert Api(sender.port).post("/normal", body, headers=headers).status == 200


@pytest.mark.parametrize("event_id", ["evt 1", "evt/1", "e" * 129])
def test_an_id_that_is_none_is_refused_although_it_is_signed(sender, event_id):
    answer = sender.post("/normal", event_id)
    assert (answer.status, answer.body) == (401, b"malformed")
    assert sender.path("/normal")["effects"] == 0


def test_a_foreign_key_does_not_verify(sender):
    assert sender.post("/normal", key=b"x" * 32).status == 401


def test_one_of_several_signatures_is_enough(sender):
    body = envelope("evt_x", "pump-1")
    good = sender.headers("evt_x", body)["webhook-signature"]
    other = "v1," + base64.b64encode(b"y" * 32).decode()
    for signatures in (f"{other} {good}", f"{good} {other}", f"v1a,x {good}"):
        headers = resigned(sender, body, **{"webhook-signature": signatures})
        assert Api(sender.port).post("/normal", body, headers=headers).status == 200


@pytest.mark.parametrize("change, status", [
    ({}, 200),
    ({"X-Event-ID": "evt_y"}, 401),
    ({"X-Webhook-Signature": "v1=" + "0" * 64}, 401),
    ({"X-Webhook-Timestamp": "1"}, 401),
])
def test_the_older_scheme_must_fit_as_well(sender, change, status):
    body = envelope("evt_x", "pump-1")
    at = str(int(time.time()))
    older = {"X-Event-ID": "evt_x", "X-Webhook-Timestamp": at,
             "X-Webhook-Signature": "v1=" + sign(KEY, at.encode(), body).hexdigest()}
    headers = resigned(sender, body, **{**older, **change})
    assert Api(sender.port).post("/normal", body, headers=headers).status == status


@pytest.mark.parametrize("off, status", [(-280, 200), (280, 200), (-320, 401), (320, 401)])
def test_the_timestamp_may_be_five_minutes_off(sender, off, status):
    assert sender.post("/normal", at=time.time() + off).status == status


def test_secrets_are_found_as_soon_as_they_are_written(sender, secrets_file):
    other = secrets.token_bytes(24)
    assert sender.post("/normal/a", key=other).status == 401
    with secrets_file.open("a") as file:
        file.write(f"/normal/a whsec_{base64.b64encode(other).decode()}\n")
    assert sender.post("/normal/a", key=other).status == 200
    assert sender.post("/normal/a/b", key=other).status == 200
    assert sender.post("/normal/ab", key=other).status == 401
    assert sender.post("/normal", key=KEY).status == 200
    secrets_file.unlink()
    assert sender.post("/normal", key=KEY).status == 401


def test_the_longest_prefix_counts_wherever_it_stands(sender, secrets_file):
    other = secrets.token_bytes(64)
    secrets_file.write_text(f"/normal/a whsec_{base64.b64encode(other).decode()}\n"
                            f"/normal {SECRET}\n/ {SECRET}\n")
    assert sender.post("/normal/a/b", key=other).status == 200
    assert sender.post("/normal/a", key=KEY).status == 401
    assert sender.post("/normal/b", key=KEY).status == 200


def test_a_broken_secrets_file_leaves_what_was_known(sender, secrets_file):
    assert sender.post("/normal").status == 200
    secrets_file.write_text("/normal whsec_short\n")
    assert sender.post("/normal").status == 200
    assert "line 1" in sender.program.log()
    assert "whsec_short" not in sender.program.log()


def test_without_secrets_nothing_verifies(receiver):
    answer = Sender(receiver).post("/normal")
    assert (answer.status, answer.body) == (401, b"no_secret")


# -- what it sees --


def test_a_repeat_has_one_effect_and_keeps_the_first_body(sender, records):
    body = b'{"id":"evt_x","asset":"a","data":{"n": 1.0, "big": ' + b"9" * 30 + \
        b', "s": "\\ud83d \xf0\x9f\x98\x80"}}'
    for _ in range(3):
        assert sender.post("/normal", "evt_x", body).status == 200
    got = Api(sender.port).get("/receipts/body?path=/normal&event_id=evt_x")
    assert got.body == body
    assert sender.events("/normal")["events"] == [{
        "event_id": "evt_x", "asset": "a", "position": None, "requests": 3,
        "statuses": [200, 200, 200], "body_sha256": hashlib.sha256(body).hexdigest()}]
    assert records.value("SELECT count(*) FROM receiver.request WHERE body IS NOT NULL") == 1
    assert records.value("SELECT count(*) FROM receiver.effect") == 1


def test_a_body_that_is_no_event_is_refused(sender):
    for body in (b"", b"{", b"[]", b'{"asset": 1}', b'{"asset": ""}',
                 b'{"asset": "\xc0\x80"}', b'{"asset": "\xe0\x80\x80"}',
                 b'{"asset": "\xed\xa0\x80"}', b'{"asset": "\xf0\x80\x80\x80"}',
                 b'{"asset": "\xf4\x90\x80\x80"}', b'{"asset": "\xff"}',
                 b'{"asset": "a\\u0000b"}', b'{"asset": "a\\nb"}'):
        assert sender.post("/normal", body=body).status == 400
    assert sender.path("/normal")["effects"] == 0


def test_a_later_event_first_is_a_violation_of_order(sender):
    sender.post("/normal", "a", position=10)
    sender.post("/normal", "b", position=30)
    sender.post("/normal", "a", position=10, attempt=2)  # a repeat may be late
    sender.post("/normal", "x", position=5, asset="pump-2")  # another lane
    sender.post("/normal", "y", position=5, asset=None)  # no lane
    sender.post("/normal/other", "z", position=5)
    assert sender.path("/normal")["order_violations"] == 0
    sender.post("/normal", "c", position=20)
    assert sender.path("/normal")["order_violations"] == 1
    assert sender.path("/normal/other")["order_violations"] == 0
    assert [e["position"] for e in sender.events("/normal")["events"]] == [10, 30, 5, 5, 20]


def test_requests_of_one_lane_at_a_time_overlap(sender):
    first = sender.open("/slow?ms=400", "a", position=1)
    until(lambda: sender.path("/slow"), "the first is in hand")
    sender.post("/slow?ms=1", "x", position=1, asset="pump-2")
    sender.post("/slow?ms=1", "y", asset=None)
    assert sender.path("/slow")["overlaps"] == 0
    sender.post("/slow?ms=1", "b", position=2)
    assert sender.path("/slow")["overlaps"] == 1
    assert first.getresponse().status == 200
    sender.post("/slow?ms=1", "c", position=3)
    assert sender.path("/slow")["overlaps"] == 1


def test_a_request_that_its_sender_gave_up_overlaps_nothing(sender):
    first = sender.open("/never", "a", position=1)
    until(lambda: sender.path("/never"), "the first is in hand")
    first.close()
    second = sender.open("/never", "a", position=1, attempt=2)
    until(lambda: sender.path("/never")["requests"] == 2, "the second is in hand")
    assert sender.path("/never")["overlaps"] == 0
    second.close()


def test_lists_go_on_after_their_cursor(sender):
    for n in range(5):
        sender.post("/normal", f"evt_{n}")
        sender.post("/normal/b", f"evt_{n}")
    seen, after = [], 0
    while after is not None:
        page = sender.events("/normal", after=after, limit=2)
        assert len(page["events"]) <= 2
        seen += [event["event_id"] for event in page["events"]]
        after = page["next"]
    assert seen == [f"evt_{n}" for n in range(5)]
    assert sender.events("%2Fnormal/none") == {
        "path": "/normal/none", "events": [], "next": None}


@pytest.mark.parametrize("question, status", [
    ("?path=/normal", 400),
    ("?events=1", 400),
    ("?path=/normal&events=2", 400),
    ("?path=/normal&events=1&after=x", 400),
    ("?path=/normal&events=1&limit=0", 400),
    ("?path=/normal&events=1&limit=1001", 400),
    ("?path=%00&events=1", 400),
    ("/body?path=/normal", 400),
    ("/body?path=/normal&event_id=none", 404),
    ("/nothing", 404),
])
def test_a_question_that_is_put_wrongly_is_refused(sender, question, status):
    assert Api(sender.port).get("/receipts" + question).status == status


def test_receipts_can_be_emptied(sender):
    sender.post("/normal", "a", position=9)
    sender.post("/throttle", "a")
    assert Api(sender.port).delete("/receipts").status == 204
    assert Api(sender.port).get("/receipts").expect(200) == {
        "paths": [], "totals": {"requests": 0, "effects": 0, "rejected_signatures": 0,
                                "order_violations": 0, "overlaps": 0}}
    assert sender.post("/throttle", "a").status == 429
    sender.post("/normal", "b", position=3)
    assert sender.path("/normal")["order_violations"] == 0


def test_many_at_once_are_all_kept(sender):
    def post_all(worker):
        for n in range(50):
            answers.append(sender.post("/normal", f"evt_{worker}_{n}", position=n,
                                       asset=f"pump-{worker}"))

    answers = []
    workers = [threading.Thread(target=post_all, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [answer.status for answer in answers] == [200] * 400
    assert sender.path("/normal") == {
        "path": "/normal", "requests": 400, "effects": 400, "rejected_signatures": 0,
        "order_violations": 0, "overlaps": 0}


# -- its life --


def test_what_was_answered_outlives_a_crash(own):
    own.post("/normal", "a", position=10)
    own.post("/throttle", "a")
    own.program.kill(signal.SIGKILL)
    own.program.start()
    assert own.path("/normal")["effects"] == 1
    assert own.post("/throttle", "a").status == 200
    own.post("/normal", "b", position=5)
    assert own.path("/normal")["order_violations"] == 1


def test_it_says_so_while_the_database_is_away_and_comes_back(own, empty_db):
    assert own.post("/throttle", "a").status == 429
    empty_db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                     " WHERE application_name = 'postrider-receiver'")
    until(lambda: own.post("/throttle", "a").status == 200, "receipts are kept again")
    assert Api(own.port).get("/healthz").status == 200
    assert "receipts cannot be kept" in own.program.log()
    assert "receipts are kept again" in own.program.log()


def test_it_does_not_wait_for_ever_when_it_ends(own):
    held = [own.open("/never", "a"), own.open("/slow?ms=60000", "b"),
            own.open("/endless", "c")]
    until(lambda: Api(own.port).get("/receipts").json["totals"]["requests"] == 3,
          "all are in hand")
    reader = threading.Thread(target=lambda: held[2].getresponse().read(), daemon=True)
    reader.start()
    own.program.kill(signal.SIGTERM)
    assert held[1].getresponse().status == 200
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        held[0].getresponse()
    reader.join(timeout=20)
    assert not reader.is_alive()
    assert own.program.wait() == 0


def test_a_wrong_setting_or_database_stops_the_start(programs, empty_db):
    broken = programs(Receiver, {"database": empty_db.conninfo, "tolerance": "soon"},
                       start=False)
    assert broken.launch().wait() == 2
    broken = programs(Receiver, {"database": empty_db.conninfo + " dbname=nowhere"},
                       start=False)
    assert broken.launch().wait() == 1


def test_a_port_that_is_taken_stops_the_start(programs, empty_db):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broken = programs(Receiver, {"database": empty_db.conninfo,
                                      "listen_port": taken.getsockname()[1]}, start=False)
        assert broken.launch().wait() == 1
