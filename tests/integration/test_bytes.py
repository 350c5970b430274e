"""The data that arrives is the data that is kept, byte for byte, or refused."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

DATA = Path(os.environ.get("POSTRIDER_TEST_DATA", "/nonexistent"))


def data_of(body):
    """The raw bytes of `data` in the body that is sent: its last member."""
    head, found, data = body.partition(b',"data":')
    assert found and data.endswith(b"}")
    json.loads(head + b"}")
    return data[:-1]


def kept(db, event_id):
    return db.value("SELECT body FROM postrider.event WHERE event_id = %s", (event_id,))


TAKEN = [
    b"123456789012345678901234567890", b"-0", b"0.0", b"1.0", b"136.0", b"1E2", b"1e400",
    b"1e-400", b"9007199254740993", b"9223372036854775808", b"18446744073709551616",
    b'{"a":1,"a":2}', b'{"b":1,"a":2}', b'{ "a" :\t[1 , 2]\r\n}', b"[]", b"{}", b"null", b"true",
    b'""', b'"\\ud83d\\ude00"', "\"\U0001f600\"".encode(), '"\u00e9 e\u0301"'.encode(),
    '"\u2028\u2029"'.encode(), b'"x\\u0000y"', b'"\\/\\"\\\\"', b'"\x7f"',
    "\"\U0010ffff\"".encode(), b'{"":0}', b"[" * 60 + b"]" * 60,
]

REFUSED = [
    b'"\\ud83d"', b'"\\ude00"', b'"\\ude00\\ud83d"', b'"\x01"', b'"a\nb"', b'"\xff"',
    b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b"01", b"-01", b"1.", b".5",
    b"+1", b"NaN", b"Infinity", b"'a'", b"[1,]", b"[1 2]", b'{"a" 1}', b"{a:1}", b"nul",
    b"1 2", b"", b"\x00", b'"\x00"', b"[" * 100 + b"]" * 100, b"0x1", b"1e", b'"\\x"', b"/**/1",
]


def test_what_is_valid_is_kept_as_it_came(api, db):
    for n, data in enumerate(TAKEN):
        answer = api.post("/v1/events", b'{"id":"x%d","type":"t","data":%s}' % (n, data))
        assert answer.status == 202, (data, answer)
        assert data_of(kept(db, f"x{n}")) == data


def test_what_is_not_valid_is_refused_at_once(api, db):
    for data in REFUSED:
        answer = api.post("/v1/events", b'{"id":"x","type":"t","data":%s}' % data)
        assert answer.status == 400, (data, answer)
        assert answer.json["detail"]
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_the_body_says_what_the_event_is(api, db):
    asset = "\u00e9\U0001f600\"\\/"
    api.post("/v1/events", {"id": "a:b-c_D9", "type": "a.b-c.d_e", "asset": asset,
                            "data": {"n": 1}}).expect(202)
    body = json.loads(kept(db, "a:b-c_D9"))
    assert list(body) == ["id", "type", "asset", "timestamp", "data"]
    assert (body["id"], body["type"], body["asset"], body["data"]) == (
        "a:b-c_D9", "a.b-c.d_e", asset, {"n": 1})
    assert db.value("SELECT asset FROM postrider.event") == asset
    api.event(1, id="without")
    assert list(json.loads(kept(db, "without"))) == ["id", "type", "timestamp", "data"]


def test_an_admin_is_shown_what_is_sent_as_it_is(api, db):
    api.post("/v1/events", b'{"id":"x","type":"t","data":[1.0,123456789012345678901234567890]}')
    shown = api.get("/v1/events/x/payload")
    assert (shown.status, shown.body) == (200, kept(db, "x"))
    assert shown.headers["Content-Type"] == "application/json"
    assert shown.headers["Cache-Control"] == "no-store"
    api.get("/v1/events/y/payload").expect(404)
    db.execute("UPDATE postrider.event SET body = NULL")
    assert "purged" in api.get("/v1/events/x/payload").expect(404)["detail"]


def test_the_database_may_live_in_any_time_zone(make_ingest, admin_key, db):
    db.execute(f"ALTER DATABASE {db.name} SET TimeZone = 'Asia/Kolkata'")
    api = make_ingest(extra={"TZ": "America/St_Johns"}).api(admin_key)
    answer = api.event(1, id="x")
    assert db.value("SELECT abs(extract(epoch FROM %s::timestamptz - accepted_at)) < 0.001"
                    " FROM postrider.event", (answer["accepted_at"],))
    stamp = json.loads(kept(db, "x"))["timestamp"]
    assert db.value("SELECT abs(extract(epoch FROM %s::timestamptz - now())) < 60", (stamp,))


@pytest.mark.skipif(not (DATA / "json").is_dir(), reason="POSTRIDER_TEST_DATA has no json/")
def test_the_json_suite_as_data(api, db):
    files = sorted((DATA / "json").glob("*.json"))
    assert files

    def post(pair):
        n, path = pair
        text = b'{"id":"s%d","type":"t","data":' % n + path.read_bytes() + b"}"
        return n, path, api.post("/v1/events", text)

    wrong = []
    with ThreadPoolExecutor(8) as pool:
        for n, path, answer in pool.map(post, enumerate(files)):
            sort = path.name[0]
            if sort == "n" and answer.status not in (400, 413, 422):
                wrong.append(f"{path.name}: {answer.status}")
            elif sort != "n" and answer.status == 202:
                if data_of(kept(db, f"s{n}")) != path.read_bytes().strip(b" \t\r\n"):
                    wrong.append(f"{path.name}: other bytes")
            elif sort == "y" or (sort == "i" and answer.status not in (400, 422)):
                wrong.append(f"{path.name}: {answer.status}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not (DATA / "events/github.ndjson").is_file(),
                    reason="POSTRIDER_TEST_DATA has no events/github.ndjson")
def test_real_payloads_in_batches(api, db, endpoint):
    api.subscribe(endpoint.url)
    lines = (DATA / "events/github.ndjson").read_bytes().splitlines()
    for n in range(0, len(lines), 100):
        api.post("/v1/events/batch", b"\n".join(lines[n:n + 100]),
                 headers={"Content-Type": "application/x-ndjson"}).expect(202)
    bodies = dict(db.rows("SELECT event_id, body FROM postrider.event"))
    assert len(bodies) == len(lines)
    for line in lines:
        event = json.loads(line)
        raw = line.partition(b'"data":')[2].rstrip()[:-1]
        assert data_of(bodies[event["id"]]) == raw
