"""What is asked in a way that is not served is refused before anything is done."""

from .api import Api

JSON_ACCEPTED = [
    "", "*/*", "application/*", "application/json", "APPLICATION/JSON",
    "text/html, application/json", "text/html,*/*;q=0.1", "application/json;q=0.001",
    "application/json; q=1", "application/json;charset=utf-8", "*/*;q=0, application/json",
    "application/*;q=0, application/json", "text/html;q=0,,*/*", "application/json;version=1;q=0.5",
]
JSON_EXCLUDED = [
    "text/html", "application/xml", "application/jso", "application/jsonx", "json", "text/*",
    "application/json;q=0", "*/*, application/json;q=0", "*/*;q=0", "*/*;q=0.000",
    "application/*;q=0, */*", "application/json ; q=0, */*;q=1", "image/*,text/*;q=0.5", ",",
]


def problem(answer, status):
    body = answer.expect(status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    return body


def status_accepting(api, lines):
    connection = api.connect()
    connection.putrequest("GET", "/v1/subscriptions")
    connection.putheader("Authorization", f"Bearer {api.key}")
    for line in lines:
        connection.putheader("Accept", line)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_a_client_does_not_accept_is_not_sent(api, db):
    for accept in JSON_ACCEPTED:
        answer = api.get("/v1/subscriptions", headers={"Accept": accept})
        assert answer.status == 200, accept
    for accept in JSON_EXCLUDED:
        answer = api.get("/v1/subscriptions", headers={"Accept": accept})
        assert answer.status == 406, accept
        assert "application/json" in problem(answer, 406)["detail"]
    # Several lines are one list.
    lines = ("text/html", "application/json"), ("application/json;q=0", "*/*"), ("", "image/*")
    for accept, status in zip(lines, (200, 406, 406)):
        assert status_accepting(api, accept) == status, accept
    assert api.get("/metrics", headers={"Accept": "text/plain;version=0.0.4"}).status == 200
    problem(api.get("/metrics", headers={"Accept": "application/json"}), 406)
    # Before anything is kept.
    problem(api.post("/v1/events", {"type": "t", "data": 1}, headers={"Accept": "text/html"}), 406)
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_a_query_that_nobody_reads_is_refused(api, db):
    for method, path in (("POST", "/v1/events?dry_run=1"), ("GET", "/v1/events/e?x"),
                         ("POST", "/v1/subscriptions?tenant=other"), ("GET", "/healthz?x=1")):
        body = {"type": "t", "data": 1} if method == "POST" else None
        assert "query" in problem(api.call(method, path, body), 400)["detail"]
    assert db.value("SELECT count(*) FROM postrider.event") == 0


def test_a_body_that_nobody_reads_is_refused(api, endpoint):
    path = f"/v1/subscriptions/{api.subscribe(endpoint.url)['id']}"
    for body in (b'{"for_seconds":60}', b"[]", b" {} ", b"null"):
        problem(api.post(path + "/pause", body), 400)
    assert api.get(path).expect(200)["state"] == "active"
    api.post(path + "/pause", b"{}").expect(200)
    api.post(path + "/resume").expect(200)


def test_a_key_is_asked_for_before_what_the_rest_is_like(ingest):
    """A stranger does not learn which members there are."""
    nobody = Api(ingest.port)
    for headers in ({"Accept": "text/html"}, {"Content-Type": "text/html"}):
        problem(nobody.post("/v1/events?x=1", b"{}", headers=headers), 401)
