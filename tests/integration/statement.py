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


def append(connection, tenant, subscription, event_id, asset):
    """The first half of an acceptance: the event and its delivery."""
    body = json.dumps({"id": event_id, "asset": asset, "data": {}}).encode()
    statement(connection, "event_accept", [tenant], [event_id], ["t"], [asset], [b"x" * 32],
              [body], [1])
    statement(connection, "delivery_append", [tenant], [event_id], [subscription], [asset])


def announce(connection, subscription):
    """The second half."""
    statement(connection, "turn_share", [subscription])
    statement(connection, "turn_ready", [subscription])


def accept(connection, tenant, subscription, event_id, asset):
    """Acceptance as ingest does it, up to the commit."""
    append(connection, tenant, subscription, event_id, asset)
    announce(connection, subscription)
