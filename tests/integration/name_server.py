"""A name server inside the test, over UDP and TCP, which says what it is told."""

import collections
import ipaddress
import socket
import socketserver
import struct
import threading

A, CNAME, AAAA = 1, 5, 28
OK, SERVFAIL, NXDOMAIN = 0, 2, 3
UDP_MAX = 512

Question = collections.namedtuple("Question", "name type is_tcp")


def encoded(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def record(owner, kind, data):
    # A TTL of 0: nobody may remember it.
    return encoded(owner) + struct.pack("!HHIH", kind, 1, 0, len(data)) + data


def address_record(owner, text):
    address = ipaddress.ip_address(text)
    return record(owner, A if address.version == 4 else AAAA, address.packed)


class Answer:
    """Addresses, perhaps behind aliases; or an error; or silence."""

    def __init__(self, *addresses, rcode=OK, aliases=(), is_silent=False):
        self.addresses = addresses
        self.rcode = rcode
        self.aliases = aliases
        self.is_silent = is_silent

    def records(self, name, kind):
        owner, out = name, []
        for alias in self.aliases:
            out.append(record(owner, CNAME, encoded(alias)))
            owner = alias
        version = 4 if kind == A else 6
        out += [address_record(owner, a) for a in self.addresses
                if ipaddress.ip_address(a).version == version]
        return out


SILENCE = Answer(is_silent=True)
FAILURE = Answer(rcode=SERVFAIL)
NO_SUCH_NAME = Answer(rcode=NXDOMAIN)


class NameServer:
    """On a free port of loopback.

    says() gives a name its answers: each look-up takes the next, and the last
    stays.  A name that was not told of does not exist.
    """

    def __init__(self):
        self.questions = []
        self._answers = {}
        self._lock = threading.Lock()
        server = self

        class OverUdp(socketserver.BaseRequestHandler):
            def handle(self):
                octets, sock = self.request
                answer = server._answer(octets, is_tcp=False)
                if answer:
                    sock.sendto(answer, self.client_address)

        class OverTcp(socketserver.StreamRequestHandler):
            def handle(self):
                while head := self.rfile.read(2):
                    answer = server._answer(
                        self.rfile.read(int.from_bytes(head, "big")), is_tcp=True)
                    if answer:
                        self.wfile.write(struct.pack("!H", len(answer)) + answer)

        class Tcp(socketserver.ThreadingTCPServer):
            daemon_threads = True
            block_on_close = False
            allow_reuse_address = True

        while True:  # until a port is free for both
            self._tcp = Tcp(("127.0.0.1", 0), OverTcp)
            try:
                self._udp = socketserver.ThreadingUDPServer(self._tcp.server_address, OverUdp)
                break
            except OSError:
                self._tcp.server_close()
        self._threads = [threading.Thread(target=s.serve_forever, args=(0.05,))
                         for s in (self._udp, self._tcp)]
        for thread in self._threads:
            thread.start()

    @property
    def address(self):
        return "127.0.0.1:%d" % self._udp.server_address[1]

    def says(self, name, *answers, aaaa=None):
        """The answers to A, and to AAAA if `aaaa` has none of its own."""
        with self._lock:
            self._answers[name, A] = collections.deque(answers)
            self._answers[name, AAAA] = collections.deque([aaaa] if aaaa else answers)

    def asked(self, name, kind=A):
        return len([q for q in self.questions if q.name == name and q.type == kind])

    def _answer(self, octets, is_tcp):
        labels, at = [], 12
        while octets[at]:
            labels.append(octets[at + 1:at + 1 + octets[at]].decode())
            at += octets[at] + 1
        name = ".".join(labels)
        kind = int.from_bytes(octets[at + 1:at + 3], "big")
        with self._lock:
            answers = self._answers.get((name, kind), [NO_SUCH_NAME])
            # What does not fit is asked for once more, and is the same answer.
            told = answers[0]
            records = told.records(name, kind)
            is_cut = not is_tcp and at + 5 + sum(map(len, records)) > UDP_MAX
            if len(answers) > 1 and not is_cut:
                answers.popleft()
            self.questions.append(Question(name, kind, is_tcp))
        if told.is_silent:
            return None
        flags = 0x8180 | told.rcode | (0x0200 if is_cut else 0)
        records = [] if is_cut else records
        return (octets[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
                + octets[12:at + 5] + b"".join(records))

    def close(self):
        for server in (self._udp, self._tcp):
            server.shutdown()
        for thread in self._threads:
            thread.join()
        for server in (self._udp, self._tcp):
            server.server_close()


def own_address():
    """An address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return probe.getsockname()[0]
