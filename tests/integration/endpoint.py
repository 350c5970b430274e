"""A subscriber's webhook inside the test, which does as it is told."""

import collections
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Request = collections.namedtuple("Request", "method path headers body at")


class Server(ThreadingHTTPServer):
    # With the default of 5 a burst waits a second for its SYN to be repeated.
    request_queue_size = 1024
    daemon_threads = True
    block_on_close = False


class Endpoint:
    """An HTTP server on a free port of loopback.

    Each request takes the next word of script(), and the last word stays for
    all that follow.  A word is

        200, 503 ...    answer with that status
        "hang"          read the request and never answer
        "drop"          read the request and close the connection
        a function      called with the http.server handler and the Request
    """

    def __init__(self):
        self.requests = []
        self._words = collections.deque([200])
        self._lock = threading.Lock()
        self._closing = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except (ConnectionError, TimeoutError):
                    self.close_connection = True

            def do_POST(self):
                endpoint._take(self)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def port(self):
        return self._server.server_address[1]

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def script(self, *words):
        with self._lock:
            self._words = collections.deque(words)

    def _take(self, handler):
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length)
        request = Request(handler.command, handler.path, handler.headers, body,
                          time.monotonic())
        with self._lock:
            self.requests.append(request)
            word = self._words[0] if len(self._words) == 1 else self._words.popleft()
        self._act(handler, request, word)

    def _act(self, handler, request, word):
        if callable(word):
            word(handler, request)
        elif word == "drop":
            handler.close_connection = True
        elif word == "hang":
            self._closing.wait()
            handler.close_connection = True
        else:
            handler.send_response(word)
            handler.send_header("Content-Length", "0")
            handler.end_headers()

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
