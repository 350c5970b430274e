"""Where an asset stands: what goes next, why it waits, what waits behind it."""

import urllib.parse

from .wait import until

HOUR_MS = 3_600_000
NOTHING = {"lanes": [], "more": False}


def assets(api, asset, query=""):
    return api.get(f"/v1/assets/{urllib.parse.quote(asset, safe='')}{query}")


def lanes(api, asset, query=""):
    answer = assets(api, asset, query).expect(200)
    assert answer["asset"] == asset
    return answer["lanes"]


def events(items):
    return [item["event_id"] for item in items]


def test_an_asset_of_which_nothing_waits_has_no_lane(api, dispatch, db, endpoint):
    """As one that nobody ever named."""
    assert assets(api, "nothing").expect(200) == {"asset": "nothing", **NOTHING}
    api.subscribe(endpoint.url)
    api.event({}, asset="a")
    until(lambda: db.value("SELECT state FROM postrider.delivery") == "delivered", "it is over")
    until(lambda: lanes(api, "a") == [], "nothing waits")


def test_a_retry_shows_its_error_and_what_waits_behind_it(api, dispatch, db, endpoint):
    endpoint.script(200, 503)
    made = api.subscribe(endpoint.url, retry_base_ms=HOUR_MS, retry_cap_ms=HOUR_MS)
    with_pause(api, made, lambda: [api.event({}, asset="a", id=f"e{n}") for n in range(5)])
    until(lambda: db.value("SELECT attempts FROM postrider.lane WHERE due_at > now()") == 1,
          "the second waits for its retry")
    [lane] = lanes(api, "a")
    assert (lane["subscription_id"], lane["url"]) == (made["id"], endpoint.url)
    assert (lane["why"], lane["behind"], lane["replays"]) == ("retry", 3, 0)
    head = lane["head"]
    assert (head["event_id"], head["state"], head["attempts"]) == ("e1", "retrying", 1)
    assert (head["last_error"], head["replayed"]) == ("HTTP status 503", False)
    assert head["accepted_at"] < head["last_attempt_at"] < lane["until"]
    assert events(lane["waiting"]) == ["e2", "e3", "e4"]
    assert {(item["state"], item["last_error"]) for item in lane["waiting"]} == {("pending", None)}
    [over] = lane["finished"]
    assert (over["event_id"], over["state"], over["status"]) == ("e0", "delivered", 200)
    assert over["last_error"] is None and over["finished_at"]
    assert events(lanes(api, "a", "?limit=1")[0]["waiting"]) == ["e2"]
    # Psql says the same.
    assert db.rows("SELECT why, until = %s, delivery_id::text, behind FROM postrider.assets",
                   (lane["until"],)) == [("retry", True, head["id"], 3)]
    detail = api.get(f"/v1/subscriptions/{made['id']}/deliveries/{head['id']}").expect(200)
    for name in "state", "attempts", "status", "generation", "accepted_at", "type", "event_id":
        assert detail[name] == head[name], name


def with_pause(api, made, work):
    """Do it while nothing is sent, so that one lane gets all."""
    api.post(f"/v1/subscriptions/{made['id']}/pause").expect(200)
    work()
    api.post(f"/v1/subscriptions/{made['id']}/resume").expect(200)


def test_each_reason_to_wait_is_named(api, make_dispatch, db, make_endpoint):
    ends = {name: make_endpoint() for name in ("flying", "held", "paused", "circuit", "disabled")}
    ends["flying"].script("hang")
    ends["held"].script(404)
    ends["circuit"].script(500)
    ids = {name: api.subscribe(end.url, **{
        "held": {"on_dead": "hold"}, "circuit": {"circuit_after": 1}}.get(name, {}))["id"]
        for name, end in ends.items()}
    api.post(f"/v1/subscriptions/{ids['paused']}/pause").expect(200)
    api.event({}, asset="a", id="e")
    db.execute("UPDATE postrider.subscription SET state = 'disabled' WHERE id = %s",
               (int(ids["disabled"]),))
    db.execute("UPDATE postrider.turn SET rest = 'disabled', entered_at = NULL"
               " WHERE subscription_id = %s", (int(ids["disabled"]),))
    make_dispatch()

    def why():
        return {lane["subscription_id"]: lane["why"] for lane in lanes(api, "a")}

    wanted = {ids[name]: name for name in ends} | {ids["flying"]: "in flight"}
    until(lambda: why() == wanted, "each waits for its reason")
    found = {lane["subscription_id"]: lane for lane in lanes(api, "a")}
    assert list(found) == sorted(found, key=int)
    assert found[ids["held"]]["head"]["state"] == "dead"
    assert found[ids["held"]]["head"]["last_error"] == "HTTP status 404"
    assert found[ids["flying"]]["head"]["state"] == "delivering"
    assert found[ids["circuit"]]["until"] and found[ids["paused"]]["until"] is None
    assert [lane["subscription_id"] for lane in lanes(
        api, "a", f"?subscription={ids['held']}")] == [ids["held"]]
    assert assets(api, "a", "?subscription=987654").expect(200)["lanes"] == []


def test_replays_go_first_and_are_told_apart(api, make_dispatch, db, endpoint):
    endpoint.script(404, 404, "hang")
    made = api.subscribe(endpoint.url)
    with_pause(api, made, lambda: [api.event({}, asset="a", id=f"e{n}") for n in range(4)])
    make_dispatch()
    until(lambda: len(endpoint.requests) == 3, "the third is in flight")
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letter") == 2, "two are dead")
    dead = [str(row[0]) for row in db.rows("SELECT delivery_id FROM postrider.dead_letter"
                                           " ORDER BY 1")]
    for delivery in reversed(dead):
        api.post(f"/v1/subscriptions/{made['id']}/deliveries/{delivery}/retry").expect(202)
    [lane] = lanes(api, "a")
    assert (lane["why"], lane["replays"], lane["behind"]) == ("in flight", 2, 1)
    assert lane["head"]["event_id"] == "e2"
    assert events(lane["waiting"]) == ["e0", "e1", "e3"]
    assert [item["replayed"] for item in lane["waiting"]] == [True, True, False]
    assert events(lanes(api, "a", "?limit=2")[0]["waiting"]) == ["e0", "e1"]


ASSETS = ("pump-17", "order/4711", "a/b/c", "50%", "100%25", "a b", "ä→𝄞", "?x=1&y#z", "+", "..",
          ".", "'\"\\;--", "{id}", "x" * 256, "→" * 85)


def test_an_asset_is_found_whatever_characters_it_has(api, endpoint):
    api.subscribe(endpoint.url)
    for n, asset in enumerate(ASSETS):
        api.event({}, asset=asset, id=f"e{n}")
    for n, asset in enumerate(ASSETS):
        assert [lane["head"]["event_id"] for lane in lanes(api, asset)] == [f"e{n}"], asset


def test_what_can_be_no_asset_is_refused(api):
    for path, status in (
            ("%ff", 400), ("%c3", 400), ("%00", 404), ("a%00b", 404), ("", 404), ("a/b", 404),
            ("x" * 257, 404), ("%zz", 400), ("a?limit=0", 400), ("a?limit=101", 400),
            ("a?subscription=x", 400), ("a?x=1", 400)):
        assert api.get(f"/v1/assets/{path}").status == status, path


def test_another_tenants_asset_is_as_one_that_is_not_there(api, cli, ingest, endpoint):
    made = api.subscribe(endpoint.url)
    api.event({}, asset="a")
    cli("tenant", "create", "globex")
    stranger = ingest.api(cli.json("key", "create", "--tenant", "globex", "--role",
                                   "viewer")["key"])
    stranger_admin = ingest.api(cli.json("key", "create", "--tenant", "globex", "--role",
                                         "admin")["key"])
    stranger_admin.subscribe(endpoint.url)
    assert lanes(stranger, "a") == []
    assert lanes(stranger, "a", f"?subscription={made['id']}") == []
    stranger_admin.event({}, asset="a", id="mine")
    assert [lane["head"]["event_id"] for lane in lanes(stranger, "a")] == ["mine"]
    assert lanes(api, "a")[0]["head"]["event_id"] != "mine"


def test_more_lanes_than_are_shown_are_admitted(api, endpoint):
    for _ in range(101):
        api.subscribe(endpoint.url)
    api.event({}, asset="a")
    answer = assets(api, "a").expect(200)
    assert (len(answer["lanes"]), answer["more"]) == (100, True)
