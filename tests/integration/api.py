"""A client for the JSON API that hides nothing of the answer."""

import http.client
import json


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # as http.client has them: case does not matter
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def expect(self, status):
        """Insist on the status; returns the JSON body, or None if empty."""
        assert self.status == status, f"{self.status} instead of {status}: {self.body[:2000]!r}"
        return self.json if self.body else None

    def __repr__(self):
        return f"<{self.status} {self.body[:200]!r}>"


class Api:
    """Calls with one key, over TLS if there is a context for it.  A connection a call,
    so threads may share it."""

    def __init__(self, port, key=None, host="127.0.0.1", seconds=20, context=None):
        self.port = port
        self.key = key
        self.host = host
        self.seconds = seconds
        self.context = context

    def connect(self):
        if self.context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=self.seconds)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=self.seconds, context=self.context)

    def call(self, method, path, body=None, headers=None):
        """`body` is bytes, sent as they are, or something to make JSON of."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        if self.key is not None:
            headers.setdefault("Authorization", f"Bearer {self.key}")
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def get(self, path, **how):
        return self.call("GET", path, **how)

    def post(self, path, body=None, **how):
        return self.call("POST", path, body, **how)

    def patch(self, path, body=None, **how):
        return self.call("PATCH", path, body, **how)

    def delete(self, path, **how):
        return self.call("DELETE", path, **how)

    # -- the two calls that nearly every test makes --

    def subscribe(self, url, **fields):
        """A subscription: its answer, with id and secret."""
        return self.post("/v1/subscriptions", {"url": url, **fields}).expect(201)

    def event(self, data, type="test.made", **fields):
        """An accepted event: the answer."""
        return self.post("/v1/events", {"type": type, "data": data, **fields}).expect(202)
