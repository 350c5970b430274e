"""The programs' own statements, run by hand: two transactions, step by step."""

import json
import re
from pathlib import Path

SQL = Path(__file__).parents[2] / "sql"


def statement(connection, name, *parameters):
    """Run one of the programs' own statements."""
    text = (SQL / f"{name}.sql").read_text().replace("%", "%%")
    text = re.sub(r"\$(\d+)", r"%(p\1)s", text)
    return connection.execute(
        text, {f"p{n}": value for n, value in enumerate(parameters, 1)})


def accept_all(connection, tenant, ids, subscription=None, assets=None, bodies=None,
               type="t", named=None, ordered=True):
    """The first half of an acceptance: new events, and the delivery of each."""
    n = len(ids)
    assets = assets or [None] * n
    bodies = bodies or [b"{}"] * n
    by_id = sorted(range(n), key=lambda i: ids[i])
    lanes = {}
    for i in range(n) if subscription else ():
        asset = assets[i] if ordered else None
        lanes.setdefault((asset is None, asset or i), []).append(i)
    keys, lanes = sorted(lanes), [lanes[key] for key in sorted(lanes)]
    pairs = [(place, i + 1, len(lane) - 1 - k)
             for place, lane in enumerate(lanes, 1) for k, i in enumerate(lane)]
    statement(
        connection, "event_accept", [tenant] * n, [ids[i] for i in by_id], [type] * n,
        [assets[i] for i in by_id], [b"x" * 32] * n, [bodies[i] for i in by_id],
        [int(subscription is not None)] * n, [named] * n, [i + 1 for i in by_id],
        [subscription] * len(lanes), [None if alone else asset for alone, asset in keys],
        [len(lane) for lane in lanes], [lane[0] + 1 for lane in lanes],
        *[[pair[k] for pair in pairs] for k in range(3)], [subscription][:len(lanes)],
        *[None] * 7)


def append(connection, tenant, subscription, event_id, asset):
    """The same for one."""
    body = json.dumps({"id": event_id, "asset": asset, "data": {}}).encode()
    accept_all(connection, tenant, [event_id], subscription, [asset], [body])


def turn_share(connection, subscription):
    statement(connection, "turn_share", [subscription])


def announce(connection):
    """The second half."""
    statement(connection, "work_share")
    statement(connection, "work_ready")


def accept(connection, tenant, subscription, event_id, asset):
    """Acceptance as ingest does it, up to the commit."""
    append(connection, tenant, subscription, event_id, asset)
    announce(connection)


MARGIN = 5_000_000  # microseconds that a lease outlives the longest attempt
BEGIN_WITHIN = 100_000
ACCEPTED = 1_700_000_000_000_000  # an event, in microseconds since 1970
STAYS = 999_999  # dice: few lanes are no reason to move the place that they are read from


def claim(connection, worker="worker", limit=500):
    """The second half of a pass: turns, and lanes of them; returns {lane: token}."""
    statement(connection, "turn_take", limit, [], None)
    cursor = statement(connection, "lane_claim", limit, worker, MARGIN, BEGIN_WITHIN,
                       STAYS)
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor.fetchall()]
    return {row["lane_id"]: row["lease_token"] for row in rows}


def record(connection, lane, token, verdict, wait_us=0, version=1, **how):
    """The first half of a record: the outcome of one attempt."""
    return record_all(connection, [lane], [token], [verdict], wait_us=wait_us, version=version,
                      **how)


def record_all(connection, lanes, tokens, verdicts, wait_us=0, version=1, statuses=None,
               disables=False, hands_back=True, durations=None, accepted_us=None):
    """The same for many."""
    n = len(lanes)
    statement(connection, "lane_hold", lanes)
    return statement(
        connection, "delivery_record", lanes, tokens, [version] * n, verdicts, [wait_us] * n,
        ["answered"] * n, statuses or [200] * n, durations or [1000] * n, [None] * n, [None] * n,
        [disables] * n, [hands_back] * n, MARGIN, *[None] * 7,
        accepted_us or [ACCEPTED] * n).fetchall()


def taken_rows(connection, lanes, tokens, hands_back=True, shared=False, excerpt=None):
    """Record that each was taken; unless turns are shared, all lanes go on."""
    n = len(lanes)
    cursor = statement(connection, "delivery_taken", lanes, tokens, [1] * n, [204] * n,
                       [1000] * n, ["192.0.2.1"] * n, MARGIN, *[None] * 6,
                       excerpt and [excerpt] * n, [ACCEPTED] * n, hands_back, shared)
    names = [column.name for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def taken(connection, lanes, tokens, **how):
    """The same; {lane: new token, or None} of those that are recorded, in the answer's order."""
    return {lanes[row["ord"] - 1]: row["lease_token"]
            for row in taken_rows(connection, lanes, tokens, **how)}


def taken_one(connection, lane, token, excerpt=None):
    """The same of one lane, which goes on."""
    cursor = statement(connection, "delivery_taken_one", lane, token, 1, 204, 1000, "192.0.2.1",
                       MARGIN, *[None] * 6, excerpt, ACCEPTED)
    names = [column.name for column in cursor.description]
    rows = [dict(zip(names, row)) for row in cursor.fetchall()]
    assert all((row["ord"], row["lane_id"]) == (1, lane) for row in rows)
    return {row["lane_id"]: row["lease_token"] for row in rows}


def bodies(connection):
    """What event_bodies answers: numbers of events."""
    return [row[0] for row in statement(connection, "event_bodies").fetchall()]


def settle(connection, subscription, lane, says=0, slows=None, age=None):
    """The second half; `says`, `slows` and its age as turn_settle takes them."""
    turn_share(connection, subscription)
    return statement(connection, "turn_settle", [subscription], [lane], [says], [slows],
                     [age]).fetchall()


def rest(connection, subscription):
    """Let a turn rest that has nothing to claim."""
    statement(connection, "turn_exclude", [subscription])
    statement(connection, "turn_rest", [subscription])
