"""A subscriber that is told octet by octet what to say, in the clear or over TLS."""

import collections
import socket
import ssl
import threading

# `client` is the name in the client's certificate, None without one.
Request = collections.namedtuple("Request", "head body client")

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Wire:
    """Reads whole requests, and hands each one's socket to `answer`.

    answer(sock, n) is called with the number of the request, from 1; it says
    what it likes, and returns True if the connection is to be closed.
    """

    def __init__(self, answer=None, context=None):
        self.answer = answer or (lambda sock, n: sock.sendall(OK))
        self.context = context
        self.requests = []
        self.connections = 0
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self):
        return self._listener.getsockname()[1]

    def url(self, host="127.0.0.1"):
        return f"{'https' if self.context else 'http'}://{host}:{self.port}/hook"

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, plain):
        sock = plain
        try:
            if self.context:
                sock = self.context.wrap_socket(plain, server_side=True)
                with self._lock:
                    self._open.add(sock)
            while self._take(sock):
                pass
        except (OSError, ValueError):
            pass  # the other side has had enough, or we are closing
        finally:
            sock.close()
            plain.close()

    def _take(self, sock):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            octet = sock.recv(1)
            if not octet:
                return False
            head += octet
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = b""
        while len(body) < length:
            body += sock.recv(length - len(body))
        with self._lock:
            self.requests.append(Request(head, body, client_of(sock)))
            number = len(self.requests)
        return not self.answer(sock, number)

    def close(self):
        self._listener.close()
        for sock in list(self._open):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()


def client_of(sock):
    certificate = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
    if not certificate:
        return None
    return dict(pair for part in certificate["subject"] for pair in part)["commonName"]
