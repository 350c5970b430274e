"""The operator console as a person meets it, in Chromium."""

import json

import pytest

from .browser import NARROW, WIDE, browser, console  # noqa: F401: fixtures
from .test_detail import answer
from .wait import until

QUICK = {"max_attempts": 1, "timeout_ms": 2000, "retry_base_ms": 100, "retry_cap_ms": 100}


def make_key(cli, role, tenant):
    whose = [] if role == "operator" else ["--tenant", tenant]
    return cli.json("key", "create", "--role", role, "--name", f"the {role}", *whose)["key"]


def is_over(db, event, state):
    until(lambda: db.value("SELECT state FROM postrider.deliveries WHERE event_id = %s",
                           (event,)) == state, f"{event} is {state}")


@pytest.fixture(autouse=True)
def no_complaints(request, console):
    """Neither a script nor the policy has anything to say; what a test means to
    provoke it takes off itself, with console.complaints()."""
    yield
    assert console.complaints() == []
    for address, _ in console.loaded():
        assert address.startswith(console.origin), "another origin"


def test_a_wrong_key_is_told_so_and_the_right_one_is_kept_in_this_tab_alone(console, api):
    console.open()
    console.fill("API key", "pr_" + "x" * 43)
    console.press("Enter")
    console.sees("The key was not taken")
    assert all("401" in said for said in console.complaints())
    console.fill("API key", api.key)
    console.press("Enter")
    console.sees("acme", "admin")
    browser = console.driver
    assert api.key not in browser.current_url
    assert browser.get_cookies() == []
    assert browser.execute_script("return Object.entries(localStorage)") == []
    assert browser.execute_script("return Object.values(sessionStorage)") == [api.key]
    console.press("Forget key")
    console.sees("Enter a key")
    assert browser.execute_script("return Object.values(sessionStorage)") == []


def test_a_key_that_is_revoked_is_asked_for_anew(console, api, cli, tenant):
    made = cli.json("key", "create", "--role", "publisher", "--tenant", tenant)
    console.sign_in(made["key"], "#/submit")
    console.sees("Send an event")
    cli("key", "revoke", str(made["id"]))
    console.press("Send")
    console.sees("The key was not taken", "Enter a key")
    assert all("401" in said for said in console.complaints())


def test_what_is_wrong_with_an_event_is_said_at_its_field(console, api):
    console.sign_in(api.key, "#/submit")
    console.fill("Data (JSON)", "{")
    console.press("Send")
    console.sees("It is not JSON")
    wrong = console.driver.switch_to.active_element
    assert wrong.get_attribute("name") == "data" and wrong.get_attribute("aria-invalid") == "true"
    assert "JSON" in console.text("#" + wrong.get_attribute("aria-describedby").split()[-1])
    console.fill("Data (JSON)", '{"n": 1.0}')
    console.fill("Id", "has.a.dot")
    console.press("Send")
    console.sees("Id: ", selector=".is-wrong")
    assert all("422" in said for said in console.complaints())
    console.fill("Id", "good-1")
    console.press("Send")
    console.sees("Accepted", "good-1")
    console.press("Send")
    console.sees("It was accepted before")


def test_a_payload_is_shown_to_who_may_see_it_byte_for_byte(console, api, cli, tenant, db):
    data = b'{"type":"t","id":"e1","data":{"n":1.0,"big":123456789012345678901234567890}}'
    api.post("/v1/events", data).expect(202)
    console.sign_in(api.key, "#/events/e1")
    console.sees("Show what is sent")
    console.driver.execute_script(
        "window.real = window.fetch; window.fetch = () => Promise.reject();")
    console.press("Show what is sent")
    console.sees("The server cannot be reached", selector=".payload")
    console.driver.execute_script("window.fetch = window.real")
    for _ in range(2):  # closed, and opened again
        console.press("Show what is sent")
    console.sees('{"n":1.0,"big":123456789012345678901234567890}')
    console.press("Forget key")
    console.sign_in(make_key(cli, "viewer", tenant), "#/events/e1")
    console.sees("Event e1")
    assert "Payload" not in console.text()
    db.execute("UPDATE postrider.event SET body = NULL")
    console.press("Forget key")
    console.sign_in(api.key, "#/events/e1")
    console.press("Show what is sent")
    console.sees("Its payload was purged")
    assert all("404" in said for said in console.complaints())


def test_a_failed_delivery_tells_why_and_is_sent_again(console, api, dispatch, db, endpoint):
    endpoint.script(answer(500, b"<b>no</b> room", ("X-Request-Id", "r-17")), 200)
    made = api.subscribe(endpoint.url, **QUICK)
    api.event({}, id="e1", asset="pump-17")
    is_over(db, "e1", "dead")
    delivery = db.value("SELECT id FROM postrider.deliveries")
    console.sign_in(api.key, f"#/subscriptions/{made['id']}/deliveries/{delivery}")
    console.sees("dead", "HTTP 500", "<b>no</b> room", "wait ", f"127.0.0.1:{endpoint.port}",
                 "pump-17")
    path = f"/v1/subscriptions/{made['id']}/deliveries/{delivery}"
    headers = api.get(path).expect(200)["history"][0]["headers"]
    console.press(f"Headers of the answer ({len(headers)})")
    console.sees("x-request-id: r-17")
    console.press("Retry")
    console.sees("Send this again?", "the same bytes", selector="dialog")
    console.press("Cancel")
    assert len(endpoint.requests) == 1
    console.press("Retry")
    console.driver.switch_to.active_element.click()  # the focus is where Enter goes
    console.sees("Generation 2", "sent again", "delivered")
    assert len(endpoint.requests) == 2


def test_operators_make_tenants_and_keys_and_see_who_did(console, cli, ingest, tenant):
    console.sign_in(make_key(cli, "operator", None), "#/tenants")
    console.press("New tenant")
    console.fill("Name", "x" * 500)
    console.press("Make it")
    console.sees("A tenant's name is", selector="dialog .notice")
    assert console.driver.switch_to.active_element.get_attribute("aria-invalid") == "true"
    assert all("422" in said for said in console.complaints())
    console.fill("Name", "globex")
    console.press("Make it")
    console.sees("Tenant globex is made")
    console.go("#/keys?tenant=globex")
    console.press("New key")
    console.choose("Role", "admin: all of its tenant")
    console.press("Make it")
    console.sees("shown this once")
    key = console.text("dialog .secret").strip()
    assert ingest.api(key).get("/v1/key").expect(200)["tenant"] == "globex"
    console.press("Close")
    console.press("Revoke key " + ingest.api(key).get("/v1/key").json["id"])
    console.sees("cannot be undone", selector="dialog")
    assert console.driver.switch_to.active_element.text == "Cancel", "Enter does no harm"
    console.press("Revoke for good")
    console.sees("revoked")
    ingest.api(key).get("/v1/key").expect(401)
    console.go("#/audit?tenant=globex")
    console.sees("key.revoked", "key.created")
    console.press("Only action key.created")
    until(lambda: "key.revoked" not in console.text("tbody"), "others are left out")
    console.driver.back()
    console.sees("key.revoked")


def test_every_view_can_be_linked_to_and_the_way_back_works(console, api):
    console.sign_in(api.key, "#/submit")
    console.press("Events")
    console.fill("Event id", "nobody/knows ü")
    console.press("Look it up")
    console.sees("Not found", "There is no such event")
    assert console.driver.current_url.endswith("#/events/nobody%2Fknows%20%C3%BC")
    assert console.complaints()
    console.driver.back()
    console.sees("An event is found by")
    console.driver.back()
    console.sees("Send an event", selector="h1")
    console.go("#/no/such/place")
    console.sees("There is no such page")


def test_who_may_not_is_told_so(console, cli, tenant, api, endpoint):
    made = api.subscribe(endpoint.url)
    console.sign_in(make_key(cli, "publisher", tenant))
    console.sees("Send an event")
    assert "Subscriptions" not in console.text("#nav")
    console.go("#/subscriptions")
    console.sees("Not for this key", "the role publisher")
    console.press("Forget key")
    console.sign_in(make_key(cli, "viewer", tenant), f"#/subscriptions/{made['id']}/edit")
    console.sees("Not for this key")
    console.press("Forget key")
    console.sign_in(make_key(cli, "operator", None))
    console.sees(endpoint.url, "To open one takes a key of its tenant")
    assert not console.find_all("#view .grid a")
    console.go(f"#/subscriptions/{made['id']}")
    console.sees("Not for this key", "the role operator")
    assert all("403" in said for said in console.complaints())


def field(console, name):
    return console.driver.execute_script(
        "return document.getElementById(arguments[0]).value", f"field-{name}")


def test_filters_say_what_is_asked_for(console, api):
    console.sign_in(api.key, "#/deliveries")
    console.fill("Type", "order.paid")
    console.choose("State", "dead")
    console.press("Show")
    until(lambda: "type=order.paid" in console.driver.current_url, "it is asked for")
    console.fill("Asset", "never asked for")
    console.press("Clear")
    for name in ("type", "state", "asset"):
        until(lambda name=name: field(console, name) == "", f"{name} is empty")
    console.driver.back()
    until(lambda: field(console, "type") == "order.paid", "the type is back")
    assert field(console, "state") == "dead"


def test_the_tenant_that_is_shown_is_said_however_many_there_are(console, cli, db):
    db.execute("INSERT INTO postrider.tenant (name)"
               " SELECT 't' || n FROM generate_series(1, 201) n")
    console.sign_in(make_key(cli, "operator", None), "#/keys?tenant=t201")
    console.sees("No key here")
    assert field(console, "tenant") == "t201"
    console.go("#/?tenant=t201")
    console.sees("No subscription yet")
    assert field(console, "tenant") == "t201"


HOLD = """const real = window.fetch;
const held = [];
window.release = () => held.forEach((go) => go());
window.fetch = (where, what) => what.method !== 'POST' ? real(where, what) :
    new Promise((go) => held.push(go)).then(() => real(where, what));"""


def test_a_secret_is_shown_whatever_is_pressed_meanwhile(console, api, endpoint):
    made = api.subscribe(endpoint.url)
    console.sign_in(api.key, f"#/subscriptions/{made['id']}")
    console.press("Rotate secret")
    console.driver.execute_script(HOLD)
    console.press("Rotate")
    console.driver.execute_script("document.querySelector('dialog').close()")
    until(lambda: not console.find_all("dialog[open]"), "it is closed")
    console.driver.execute_script("release()")
    console.sees("The secret, shown this once", selector="dialog")
    console.press("Close")
    until(lambda: not console.find_all("dialog"), "it is closed")


def test_an_event_is_sent_once_however_often_the_button_is_pressed(console, api, db):
    console.sign_in(api.key, "#/submit")
    console.sees("Send an event", selector="h1")
    console.driver.execute_script(HOLD)
    console.press("Send")
    console.press("Send")
    console.driver.execute_script("release()")
    console.sees("Accepted")
    assert db.value("SELECT count(*) FROM postrider.event") == 1
    console.driver.execute_script("window.fetch = (where, what) => Promise.reject()")
    console.press("Send")
    console.sees("Postrider does not answer")


def test_what_is_gone_is_not_called_live(console, api, endpoint):
    made = api.subscribe(endpoint.url)
    console.sign_in(api.key, f"#/subscriptions/{made['id']}")
    console.sees("Live", selector="#live")
    api.delete(f"/v1/subscriptions/{made['id']}").expect(204)
    console.sees("Not found")
    console.misses("Live", selector="#live")
    assert all("404" in said for said in console.complaints())


def test_what_is_stale_stays_so_while_something_else_is_fresh(console, api):
    console.sign_in(api.key)
    console.sees("Backlog")
    shown = "return document.querySelector('#view > .hint time')?.dateTime"
    console.driver.execute_script("""window.real = window.fetch;
        window.fetch = (where, what) => String(where).includes('/history') ?
            Promise.resolve(new Response('{"detail":"too many"}', { status: 429 })) :
            real(where, what);""")
    console.press("Last day")
    console.sees("Stale. Too many.")
    before = console.driver.execute_script(shown)
    until(lambda: console.driver.execute_script(shown) != before, "all else is fresh")
    assert "Stale." in console.text("body")
    console.driver.execute_script("window.fetch = window.real")
    console.press("Try now")
    console.misses("Stale.")
    console.sees("Live", selector="#live")
