"""Every view of the console with a whole system behind it, in Chromium."""

import os
from pathlib import Path

import pytest

from .browser import NARROW, WIDE, browser, console  # noqa: F401: fixtures
from .packages import fetch
from .test_console import QUICK, is_over, make_key, no_complaints  # noqa: F401: a fixture
from .test_detail import answer
from .wait import until

SOURCE = Path(__file__).parent / "npm_axe"
FIRST_LOAD = 100_000

HOSTILE = '"><img src=x onerror="hacked=1"><script>hacked=1</script>'
LONG = "asset-" + 200 * "x"


def test_a_person_finds_what_failed_mends_it_and_sends_it_again(console, api, dispatch, db,
                                                                endpoint):
    endpoint.script(lambda handler, request: answer(
        404 if request.path == "/wrong" else 200, b"nobody here")(handler, request))
    console.sign_in(api.key, "#/subscriptions")
    console.sees("No subscription yet")
    console.press("New subscription")
    console.fill("URL", "ftp://example.com")
    console.press("Register")
    console.sees("Url: ", selector=".is-wrong .error")
    assert all("422" in said for said in console.complaints())
    console.fill("URL", endpoint.url + "wrong")
    console.choose("When an event is dead", "hold its asset")
    console.press("Register")
    console.sees("Registered", "whsec_", "shown this once")
    console.press("Send an event")
    console.fill("Id", "e1")
    console.press("Send")
    console.sees("Accepted", "e1 for 1 endpoint")
    is_over(db, "e1", "dead")

    console.press("Dead letters")
    console.sees("HTTP status 404", endpoint.url + "wrong")
    console.press("HTTP status 404")
    console.sees("e1", "Retry selected (0)")
    console.press("e1")
    console.sees("nobody here", "HTTP 404", "pump-17")
    console.press("pump-17")
    console.sees("e1 ended without success and holds the lane")

    console.press(endpoint.url + "wrong")
    console.press("Edit")
    console.fill("URL", endpoint.url + "right")
    console.press("Save")
    console.sees("Saved", endpoint.url + "right")
    console.press("Its dead letters")
    console.sees("Select all shown")
    console.press("Select e1")
    console.press("Retry selected (1)")
    console.sees("Retry 1 dead letter?", selector="dialog")
    console.press("Retry them")
    console.sees("1 dead letter is sent again", "No dead letters")
    is_over(db, "e1", "delivered")
    assert [request.path for request in endpoint.requests] == ["/wrong", "/right"]


def test_a_paused_subscription_says_what_waits_and_goes_on(console, api, dispatch, db, endpoint):
    made = api.subscribe(endpoint.url)
    console.sign_in(api.key, f"#/subscriptions/{made['id']}")
    console.press("Pause")
    console.sees("Nothing more is sent until it is resumed", selector="dialog")
    console.driver.switch_to.active_element.click()
    console.sees("Paused: nothing more is sent", "It is paused")
    for n in range(3):
        api.event({}, id=f"e{n}", asset="order/4711")
    console.go("#/assets")
    console.fill("Asset", "order/4711")
    console.press("Look it up")
    console.sees("Paused: nothing is sent to this endpoint until it is resumed. e0 is next.",
                 "2 events wait behind it, in order.")
    shown = console.text(".timeline")
    assert shown.index("e0") < shown.index("e1") < shown.index("e2")
    assert endpoint.requests == []
    console.press("this endpoint")
    console.press("Resume")
    console.press("Resume")
    console.sees("Resumed: it is being sent to")
    is_over(db, "e2", "delivered")
    console.driver.back()
    console.sees("Nothing of this asset waits", "delivered")


def test_a_test_tells_what_came_back(console, api, dispatch, endpoint):
    endpoint.script(answer(418, b"<i>short</i> and stout"))
    made = api.subscribe(endpoint.url)
    console.sign_in(api.key, f"#/subscriptions/{made['id']}")
    console.press("Send test")
    console.sees("It changes no delivery", selector="dialog")
    console.press("Send it")
    console.sees("It was not taken", "HTTP 418", "<i>short</i> and stout", selector="dialog")
    console.press("Close")
    console.press("Edit")
    console.fill("Filter", "$.data.n > ")
    console.press("Save")
    console.sees("Filter: ", selector=".is-wrong .error")
    assert all("422" in said for said in console.complaints())
    console.fill("Filter", "$.data.n > 1")
    console.press("Save")
    console.sees("Saved", "$.data.n > 1", selector="body")


def test_all_of_a_time_are_sent_again_while_one_watches(console, api, dispatch, db, endpoint):
    endpoint.script(400, 400, 400, 200)
    made = api.subscribe(endpoint.url, **QUICK)
    for n in range(3):
        api.event({}, id=f"e{n}")
        is_over(db, f"e{n}", "dead")
    db.execute("UPDATE postrider.event SET body = NULL WHERE event_id = 'e1'")
    console.sign_in(api.key, f"#/dead?subscription={made['id']}")
    console.sees("Cannot be sent again: its payload was purged")
    assert not console.find_all("input[aria-label='Select e1']")[0].is_enabled()
    console.press("Retry all of a time…")
    console.fill("At most so many a second", "0")
    console.driver.execute_script("document.querySelector('dialog form').noValidate = true")
    console.press("Begin")
    console.sees("whole number from 1", selector="dialog")
    assert all("422" in said for said in console.complaints())
    console.fill("At most so many a second", "50")
    console.press("Begin")
    console.sees("Replay of dead letters", "2 replayed of 3 looked at", "1: the payload was purged",
                 "50 a second")
    is_over(db, "e0", "delivered")
    is_over(db, "e2", "delivered")


def test_the_log_is_filtered_and_paged_by_addresses(console, api, dispatch, db, make_endpoint):
    good, bad = make_endpoint(), make_endpoint()
    bad.script(404)
    api.subscribe(good.url, event_types=["t.good"])
    api.subscribe(bad.url, event_types=["t.bad"], **QUICK)
    for n in range(70):
        api.event({}, id=f"e{n:02d}", type="t.bad" if n % 35 == 0 else "t.good", asset=f"a{n % 2}")
    for n in (0, 35, 69):
        is_over(db, f"e{n:02d}", "dead" if n % 35 == 0 else "delivered")
    console.sign_in(api.key, "#/deliveries")
    console.sees("50 shown")
    shown = [row.text.split()[0] for row in console.find_all("tbody tr")]
    assert shown == [f"e{n:02d}" for n in range(69, 19, -1)], "all subscriptions' logs are one"
    console.press("Older")
    console.sees("20 shown", "e19", "e00")
    console.press("Newest")
    console.sees("50 shown")
    console.choose("State", "dead")
    console.press("Show")
    console.sees("2 shown", "e35", "e00", "HTTP 404")
    assert "state=dead" in console.driver.current_url
    console.fill("Asset", "a0")
    console.press("Show")
    console.sees("1 shown", "e00")
    console.driver.back()
    console.sees("2 shown")
    console.open("#/deliveries?event=e07")
    console.sees("1 shown", "e07", "delivered")
    console.open("#/deliveries?event=nobody")
    console.sees("None fits these filters")


def test_its_numbers_are_those_of_psql(console, api, dispatch, db, endpoint):
    endpoint.script(404, 200)
    api.subscribe(endpoint.url, **QUICK)
    api.event({}, id="e0")
    is_over(db, "e0", "dead")
    dispatch.stop()
    for n in range(1, 1235):
        api.event({}, asset=str(n % 7))
    console.sign_in(api.key)
    counted = db.rows("SELECT count(*) FILTER (WHERE state NOT IN ('delivered', 'dead',"
                      " 'cancelled')), count(*) FILTER (WHERE state = 'dead')"
                      " FROM postrider.deliveries")
    assert counted == [(1234, 1)]
    console.sees("Backlog\n1,234", "Dead letters\n1", "In flight\n0", selector=".tiles")
    size = sum(size for address, size in console.loaded() if "/v1/" not in address)
    assert size < FIRST_LOAD, f"the first load is {size} octets"


def test_it_says_so_when_the_server_is_gone_and_goes_on_when_it_is_back(
        console, api, ingest, endpoint):
    api.subscribe(endpoint.url)
    console.sign_in(api.key)
    console.sees("Live", "Backlog")
    port = ingest.port
    ingest.stop()
    console.sees("Stale. The server cannot be reached", "Backlog")
    ingest.settings["listen_port"] = port
    ingest.start()
    console.press("Try now")
    console.misses("Stale.")
    console.sees("Live")
    assert all("ERR_" in said for said in console.complaints())


def test_it_can_be_used_without_a_mouse(console, api, endpoint):
    made = api.subscribe(endpoint.url)
    console.sign_in(api.key, f"#/subscriptions/{made['id']}")
    console.sees("Settings")
    driver = console.driver
    driver.execute_script("document.activeElement.blur()")
    names = []
    for _ in range(40):
        driver.switch_to.active_element.send_keys("\ue004")  # Tab
        focused = driver.switch_to.active_element
        names.append(focused.text or focused.get_attribute("aria-label") or focused.tag_name)
        assert driver.execute_script(
            "return document.activeElement === document.body ||"
            " getComputedStyle(document.activeElement).outlineStyle !== 'none'"), names[-1]
        if names[-1] == "Delete":
            break
    assert [name for name in names if name in ("Overview", "Pause", "Edit", "Delete")] == [
        "Overview", "Pause", "Edit", "Delete"]
    focused.send_keys("\ue007")  # Enter
    console.sees("It cannot be undone", selector="dialog")
    assert driver.switch_to.active_element.text == "Cancel"
    driver.switch_to.active_element.send_keys("\ue00c")  # Escape
    until(lambda: not console.find_all("dialog"), "the dialog is closed")
    assert driver.switch_to.active_element.text == "Delete", "the focus is where it was"


@pytest.fixture
def everything(api, cli, dispatch, db, make_endpoint, tenant):
    """Something for every view, with hostile values wherever they can be; returns who
    looks at what."""
    bad, held, slow = (make_endpoint() for _ in range(3))
    bad.script(answer(500, HOSTILE.encode(), ("X-Request-Id", HOSTILE)))
    held.script(answer(404, HOSTILE.encode()))
    slow.script("hang")
    subscriptions = [api.subscribe(endpoint.url + "hook?a=%22%3E%3Cscript%3E", **fields)["id"]
                     for endpoint, fields in (
        (bad, {"circuit_after": 2, "retry_base_ms": 60000, "headers": {"x-hostile": HOSTILE}}),
        (held, {"on_dead": "hold", "max_attempts": 1}), (slow, {"max_in_flight": 1}))]
    for asset in (HOSTILE, LONG, "a"):
        for _ in range(3):
            event = api.event({"text": HOSTILE}, asset=asset)["id"]
    until(lambda: db.value("SELECT count(*) FROM postrider.dead_letters") == 3, "three are dead")
    dead = db.value("SELECT min(delivery_id) FROM postrider.dead_letters")
    operator = cli.json("key", "create", "--role", "operator", "--name", HOSTILE)["key"]
    one = f"#/subscriptions/{subscriptions[1]}"
    asset = HOSTILE.replace("/", "%2F").replace('"', "%22")
    return [(api.key, (
        "#/", "#/?span=day", "#/subscriptions", "#/subscriptions?state=trouble&sort=dead",
        f"#/subscriptions/{subscriptions[0]}", one, f"{one}/edit", "#/subscriptions/new",
        f"{one}/deliveries/{dead}", "#/deliveries", "#/deliveries?state=dead", "#/dead",
        f"#/dead?subscription={subscriptions[1]}", "#/assets", f"#/assets/{asset}",
        f"#/assets/{LONG}", "#/events", f"#/events/{event}", "#/submit")),
        (operator, ("#/", "#/tenants", "#/keys", "#/audit"))]


def look(console, fragment):
    """Go there, and wait until it is shown."""
    console.go(fragment)
    until(lambda: console.find_all("h1:not(.unseen)") and not console.find_all(".spinner"),
          f"{fragment} is shown")


def check(console, fragment):
    """Nothing of what strangers wrote became more than text, and all of it has room."""
    found = console.driver.execute_script("""return {
        hacked: typeof hacked,
        elements: document.querySelectorAll('img, script, iframe, object, embed').length,
        handlers: document.querySelectorAll('[onerror], [onclick], [onload]').length,
        outside: [...document.querySelectorAll('a')].filter(
            (a) => !a.getAttribute('href').startsWith('#')).length,
        spare: innerWidth - document.documentElement.scrollWidth }""")
    assert found == {"hacked": "undefined", "elements": 2, "handlers": 0, "outside": 0,
                     "spare": max(0, found["spare"])}, fragment


def test_strangers_words_stay_words_in_every_view_and_fit_every_width(console, everything):
    for key, fragments in everything:
        console.sign_in(key)
        for size in (NARROW, WIDE):
            console.size(*size)
            for fragment in fragments:
                look(console, fragment)
                check(console, (fragment, size))
                if "/assets/%" in fragment or "/deliveries/" in fragment:
                    assert HOSTILE in console.text(), fragment
        console.press("Forget key")


def test_axe_finds_nothing_serious(console, everything):
    folder = Path(os.environ["POSTRIDER_BIN"]).parent / "npm_axe"
    fetch(SOURCE, folder)
    axe = (folder / "node_modules/axe-core/axe.min.js").read_text()
    for key, fragments in everything:
        console.sign_in(key)
        console.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        for fragment in fragments:
            look(console, fragment)
            found = console.driver.execute_async_script("""
                const done = arguments[arguments.length - 1];
                axe.run(document, { resultTypes: ['violations'] }).then((result) => done(
                    result.violations.filter((each) => ['serious', 'critical'].includes(
                        each.impact)).map((each) => [each.id, each.nodes.slice(0, 3).map(
                        (node) => [node.html.slice(0, 200), node.failureSummary])])))""")
            assert found == [], fragment
        console.press("Forget key")
