"""What the demo shows: pump inspections through four endpoints, then real payloads."""

import collections
import json
import urllib.parse

from programs import until
from show import Figures, Progress, say, table, title

INSPECTIONS = 12
SETTLE_SECONDS = 120

RETRIES = {"retry_base_ms": 100, "retry_cap_ms": 1000}

# Each path and what the receiver does there.
NORMAL = "/normal"
LOSS = "/response-loss"
WAREHOUSE = "/normal/warehouse"
REJECTED = "/rejected"
GITHUB = "/normal/github"
ENDPOINTS = {
    NORMAL: "takes each event at once",
    LOSS: "takes the event, then hangs up before it answers the first time",
    WAREHOUSE: "as /normal, for another consumer",
    REJECTED: "says 422 to all",
}

FINDINGS = ("ok", "worn seal", "ok", "vibration", "ok", "low pressure")


def inspection(n, subscriptions):
    pump = n % 4 + 1
    return {
        "id": f"inspection-{n:02}",
        "type": "pump.inspected",
        "asset": f"pump-{pump}",
        "subscriptions": subscriptions,
        "data": {"pump": f"pump-{pump}", "round": n // 4 + 1,
                 "finding": FINDINGS[n % len(FINDINGS)], "bar": 6.0 + n / 10},
    }


class Story:
    def __init__(self, stack):
        self.stack = stack
        self.figures = Figures()
        self.ids = {}  # of the subscriptions, by path

    # -- the parts --

    def pumps(self):
        title("Four endpoints")
        for path, what in ENDPOINTS.items():
            self.subscribe(path, ["pump.*"])
            say(f"  subscription {self.ids[path]}  {path:<18} {what}")

        title("Thirteen pump inspections")
        good = [self.ids[path] for path in (NORMAL, LOSS, WAREHOUSE)]
        events = [inspection(n, good) for n in range(INSPECTIONS)]
        events.append(inspection(INSPECTIONS, [self.ids[REJECTED]]))
        self.post([json.dumps(event).encode() for event in events])
        self.settle("pump.%")
        self.show_endpoints()
        self.show_dead()

        title("As it must be")
        self.check_pumps()
        self.figures.show()

    def github(self, path):
        title("Real payloads")
        if path is None or not path.exists():
            say("  skipped: there is no events/github.ndjson in the folder that --data or\n"
                "  POSTRIDER_TEST_DATA names")
            return
        lines = [line for line in path.read_bytes().splitlines() if line]
        self.subscribe(GITHUB, ["github.*"])
        say(f"  {len(lines)} GitHub webhooks of {min(map(len, lines))} to"
            f" {max(map(len, lines))} bytes, to {GITHUB}")
        self.post(lines)
        self.settle("github.%")
        self.check_github(lines)
        self.figures.show()

    # -- what is done --

    def subscribe(self, path, event_types):
        url = f"http://127.0.0.1:{self.stack.receiver.connection.port}{path}"
        body = json.dumps({"url": url, "event_types": event_types, **RETRIES})
        made = json.loads(self.stack.api.expect(201, "POST", "/v1/subscriptions", body))
        self.stack.add_secret(path, made["secret"])
        self.ids[path] = made["id"]

    def post(self, bodies):
        progress = Progress()
        for n, body in enumerate(bodies, 1):
            self.stack.api.expect(202, "POST", "/v1/events", body)
            progress.show(f"accepted {n} of {len(bodies)} events")
        progress.done()

    def settle(self, types):
        """Wait until nothing of these types is on its way."""
        progress = Progress()

        def is_settled():
            self.stack.check()
            counts = collections.Counter(
                {state: int(n) for state, n in self.stack.postgres.query(
                    "SELECT state, count(*) FROM postrider.deliveries"
                    f" WHERE type LIKE '{types}' GROUP BY state")})
            waiting = sum(counts[s] for s in ("pending", "delivering", "retrying"))
            progress.show("deliveries: " + ", ".join(
                f"{counts[s]} {s}" for s in ("delivered", "dead", "retrying", "delivering",
                                             "pending") if counts[s]))
            return waiting == 0

        until(is_settled, "every delivery is over", SETTLE_SECONDS)
        progress.done()

    # -- what was found --

    def receipts(self):
        """What the receiver says of each path."""
        answer = json.loads(self.stack.receiver.expect(200, "GET", "/receipts"))
        found = collections.defaultdict(collections.Counter)
        for path in answer["paths"]:
            found[path.pop("path")].update(path)
        return found

    def arrivals(self, path):
        """The events that came to `path`, in the order in which each came first."""
        events, after = [], 0
        while after is not None:
            page = json.loads(self.stack.receiver.expect(
                200, "GET", f"/receipts?path={path}&events=1&after={after}"))
            events += page["events"]
            after = page["next"]
        return events

    def show_endpoints(self):
        receipts = self.receipts()
        rows = []
        for path, subscription in self.ids.items():
            (made, delivered, dead, attempts), = self.stack.postgres.query(f"""
                SELECT count(*),
                       count(*) FILTER (WHERE state = 'delivered'),
                       count(*) FILTER (WHERE state = 'dead'),
                       (SELECT count(*)
                          FROM postrider.attempt a
                          JOIN postrider.delivery d ON d.id = a.delivery_id
                         WHERE d.subscription_id = {int(subscription)})
                  FROM postrider.deliveries
                 WHERE subscription_id = {int(subscription)}""")
            seen = receipts[path]
            rows.append((path, int(made), int(delivered), int(dead), int(attempts),
                         seen["requests"], seen["effects"]))
        table(("endpoint", "deliveries", "delivered", "dead", "attempts", "requests", "effects"),
              rows)

    def show_dead(self):
        for event, url, reason in self.stack.postgres.query(
                "SELECT event_id, url, reason FROM postrider.dead_letters"):
            say(f"  dead letter: {event} at {url}: {reason}")

    def check_pumps(self):
        check = self.figures.check
        made, delivered, dead = (int(n) for n in self.stack.postgres.query("""
            SELECT count(*),
                   count(*) FILTER (WHERE state = 'delivered'),
                   count(*) FILTER (WHERE state = 'dead')
              FROM postrider.deliveries""")[0])
        attempts = int(self.stack.postgres.query("SELECT count(*) FROM postrider.attempt")[0][0])
        receipts = self.receipts()
        check("deliveries made", made, 37)
        check("delivered", delivered, 36)
        check("dead", dead, 1)
        check("attempts", attempts, 49)
        check(f"requests at {LOSS}", receipts[LOSS]["requests"], 24)
        check(f"effects at {LOSS}", receipts[LOSS]["effects"], 12)
        self.check_manners(receipts.values())

    def check_manners(self, paths):
        paths = list(paths)
        for name in ("order_violations", "overlaps", "rejected_signatures"):
            self.figures.check(name.replace("_", " "), sum(path[name] for path in paths), 0)

    def check_github(self, lines):
        sent = [json.loads(line) for line in lines]
        raw = {event["id"]: line[line.index(b'"data":'):] for event, line in zip(sent, lines)}
        arrived = self.arrivals(GITHUB)
        progress = Progress()
        same = 0
        for n, event in enumerate(arrived, 1):
            query = urllib.parse.urlencode({"path": GITHUB, "event_id": event["event_id"]})
            body = self.stack.receiver.expect(200, "GET", f"/receipts/body?{query}")
            same += body.endswith(b"," + raw.get(event["event_id"], b"?"))
            progress.show(f"compared {n} of {len(arrived)} bodies")
        progress.done()

        check = self.figures.check
        order, came = by_asset((e.get("asset"), e["id"]) for e in sent), by_asset(
            (e["asset"], e["event_id"]) for e in arrived)
        check("events received", len(arrived), len(lines))
        check("data the same, byte for byte", same, len(lines))
        check("assets", len(came), len(order))
        check("assets in the order posted",
              sum(came.get(asset) == ids for asset, ids in order.items()), len(order))
        self.check_manners([self.receipts()[GITHUB]])


def by_asset(pairs):
    """The ids of each asset, in order; what has no asset has no order."""
    found = collections.defaultdict(list)
    for asset, event_id in pairs:
        if asset:
            found[asset].append(event_id)
    return found
