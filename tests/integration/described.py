"""The API's description of itself, and whether a real answer is as it says."""

import collections
import functools
import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from jsonschema import Draft202012Validator, RefResolver

from .api import Api

PATH = Path(__file__).parents[2] / "src/ingest/openapi.json"
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

# What the server adds to every answer, which OpenAPI leaves to HTTP.
OF_HTTP = {"date", "content-type", "content-length", "connection"}

# Of answers of one status from one route: more of them say no more, and cost time.
HELD_MOST = 100


class Description:
    def __init__(self, document=None):
        self.document = document or json.loads(PATH.read_text())
        self.resolver = RefResolver("", self.document)
        self.operations = self._read_operations()
        # A path without parameters comes before one that has some.
        self._patterns = sorted(
            ((re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))), method, path)
             for method, path in self.operations), key=lambda row: row[2].count("{"))

    def resolve(self, thing):
        """What a $ref leads to; anything else is itself."""
        while "$ref" in thing:
            thing = self.resolver.resolve(thing["$ref"])[1]
        return thing

    def _read_operations(self):
        """(method, path): operation, with the path's parameters among its own."""
        found = {}
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    operation = dict(item[method])
                    operation["parameters"] = [self.resolve(p) for p in (
                        *item.get("parameters", ()), *item[method].get("parameters", ()))]
                    found[method.upper(), path] = operation
        return found

    def find(self, method, path):
        """The (method, path) as the description has them, None if it has not."""
        method = "GET" if method == "HEAD" else method
        for pattern, has, named in self._patterns:
            if has == method and pattern.fullmatch(path):
                return method, named
        return None

    def faults(self, schema, value):
        """What is wrong with a value, a line each."""
        validator = Draft202012Validator(schema, resolver=self.resolver)
        return [f"at /{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"
                for error in validator.iter_errors(value)]

    # -- an answer --

    def judge(self, route, answer, is_head=False):
        """What of an answer is not as described, a line each."""
        responses = self.operations[route]["responses"]
        response = responses.get(str(answer.status))
        if response is None and answer.status >= 400:
            response = responses.get("default")
        if response is None:
            return [f"the status {answer.status} is not among its responses"]
        response = self.resolve(response)
        return (self._judge_headers(response.get("headers", {}), answer)
                + self._judge_body(response.get("content", {}), answer, is_head))

    def _judge_headers(self, described, answer):
        described = {name.lower(): self.resolve(header) for name, header in described.items()}
        wrong = []
        for name, header in described.items():
            value = answer.headers.get(name)
            if value is not None:
                wrong += [f"the header {name}: {fault}"
                          for fault in self.faults(header["schema"], value)]
            elif header.get("required"):
                wrong.append(f"the header {name} is missing")
        wrong += [f"the header {name} is not described" for name in answer.headers
                  if name.lower() not in OF_HTTP | set(described)]
        return wrong

    def _judge_body(self, content, answer, is_head):
        media = answer.headers.get("Content-Type", "").split(";")[0]
        if not content:
            return [f"a body of {media!r} where there is none"] if media or answer.body else []
        if media not in content:
            return [f"the media type {media!r} instead of {', '.join(content)}"]
        if is_head:
            return ["a body with HEAD"] if answer.body else []
        text = answer.body.decode()
        value = json.loads(text) if media.endswith("json") else text
        wrong = [f"the body, {fault}" for fault in self.faults(content[media]["schema"], value)]
        if media == "application/problem+json" and value.get("status") != answer.status:
            wrong.append(f"the body's status is {value.get('status')}")
        return wrong

    # -- a request --

    def judge_request(self, route, query, headers, body):
        """What of a request that was taken is not as described."""
        operation = self.operations[route]
        parameters = {(p["in"], p["name"].lower()): p for p in operation["parameters"]}
        wrong = []
        for name, value in parse_qsl(query, keep_blank_values=True):
            parameter = parameters.get(("query", name))
            if parameter is None:
                wrong.append(f"the query's {name} is not described")
                continue
            schema = self.resolve(parameter["schema"])
            if schema.get("type") == "integer":
                value = int(value)
            wrong += [f"the query's {name}: {fault}" for fault in self.faults(schema, value)]
        content = operation.get("requestBody", {}).get("content", {})
        media = headers.get("Content-Type", "application/json")
        if body is not None and media in content:
            value = body.decode() if isinstance(body, bytes) else body
            if isinstance(body, bytes) and media.endswith("/json"):
                value = json.loads(body)
            wrong += [f"the request's body, {fault}"
                      for fault in self.faults(content[media]["schema"], value)]
        return wrong


@functools.cache
def ours():
    """The description in the sources."""
    return Description()


class DescribedApi(Api):
    """Calls are held against the description; `seen` counts what came."""

    def __init__(self, api, seen):
        super().__init__(api.port, api.key, api.host, api.seconds)
        self.seen = seen

    def call(self, method, path, body=None, headers=None):
        answer = super().call(method, path, body, headers)
        where = urlsplit(path)
        route = ours().find(method, where.path)
        if route is None:  # test_openapi says it of a route that is not described
            return answer
        self.seen[*route, str(answer.status)] += 1
        if self.seen[*route, str(answer.status)] > HELD_MOST:
            return answer
        wrong = ours().judge(route, answer, method == "HEAD")
        if answer.status < 300:
            wrong += ours().judge_request(route, where.query, headers or {}, body)
        assert not wrong, "\n".join(
            (f"{method} {path} answered {answer.status}, and src/ingest/openapi.json says"
             f" something else at paths, {route[1]}, {method.lower()}:", *wrong))
        return answer

    def as_key(self, key):
        return DescribedApi(Api(self.port, key, self.host, self.seconds), self.seen)
