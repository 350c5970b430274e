"""The subscribers: one server on loopback that misbehaves as it is told.

A request begins when its first octets reached the kernel, and ends just before its
answer is written, or when the kernel learned that its sender had left, if that was
earlier.  The kernel keeps both times, so a loop that is late does not matter.
"""

import asyncio
import random
import socket
import struct
import threading
import time

from . import ownership
from .history import Request

# Python does not name it.
SO_TIMESTAMPNS = 35   # in <asm-generic/socket.h>
LAST_ACK_AT = 56      # of tcpi_last_ack_recv in struct tcp_info, milliseconds
CLOCK_STEP = 0.01     # that the kernel counts these in, at the coarsest

HEAD_MAX = 65536
FOR_EVER = 3600


def answer(status, body=b"", *lines):
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def has_left(sock):
    """Whether the sender has closed, by what the kernel knows now."""
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def when_left(sock):
    """When the sender closed, at the latest; None if it has not.

    Its FIN is the last that came from it.
    """
    if not has_left(sock):
        return None
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, LAST_ACK_AT + 4)
    ago = struct.unpack_from("I", info, LAST_ACK_AT)[0] / 1000
    return time.monotonic() - ago - CLOCK_STEP


class Visit:
    """One connection, and the request on it that is being answered."""

    def __init__(self, receiver, sock):
        self.receiver = receiver
        self.loop = receiver.loop
        self.sock = sock
        self.worker = None
        self.request = None
        self.buffer = b""
        self.arrived = 0  # when the last octets that were read did, wall

    # -- reading --

    async def serve(self):
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.worker = ownership.find(self.sock, self.receiver.workers())
        try:
            while await self._take_one():
                pass
        except OSError:
            pass
        finally:
            self.end()
            self.sock.close()

    async def _take_one(self):
        if not await self._more():
            return False
        wall = self.arrived
        began = time.monotonic() - (time.time() - wall)
        while b"\r\n\r\n" not in self.buffer:
            if len(self.buffer) > HEAD_MAX or not await self._more():
                return False
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.request = self.receiver.note(head.decode("latin-1"), self.worker, began, wall)
        length = int(self.request.headers.get("content-length", 0))
        while len(self.buffer) < length:
            if not await self._more():
                self.request.behaviour = "partial"
                return False
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        self.request.body = body.decode("latin-1")
        keeps = await BEHAVIOURS[self.request.behaviour](self, self.receiver.chance)
        self.end()
        return keeps

    async def _more(self):
        while True:
            try:
                data, told, _, _ = self.sock.recvmsg(65536, 128)
                break
            except BlockingIOError:
                await self._readable()
        self.arrived = time.time()
        for level, kind, value in told:
            if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("ll", value)
                self.arrived = seconds + nanoseconds / 1e9
        self.buffer += data
        return bool(data)

    async def _readable(self):
        readable = self.loop.create_future()
        self.loop.add_reader(self.sock, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            self.loop.remove_reader(self.sock)

    # -- answering --

    def end(self, status=None):
        if self.request is not None:
            at = when_left(self.sock) or time.monotonic()
            self.request.ended = max(at, self.request.began)
            self.request.status = status
        self.request = None

    async def write(self, data):
        await self.loop.sock_sendall(self.sock, data)

    async def reply(self, status, *lines, body=b""):
        """A whole answer.  True: the connection may be used again."""
        self.end(status)
        await self.write(answer(status, body, *lines))
        return True

    async def stays(self, seconds):
        """Wait; False as soon as the sender leaves."""
        try:
            await asyncio.wait_for(self._readable(), seconds)
        except asyncio.TimeoutError:
            return True
        return not has_left(self.sock)


# -- behaviours: each answers one request and says whether the connection stays --

async def ok(visit, chance):
    if not await visit.stays(chance.random() * 0.008):
        return False
    return await visit.reply(chance.choice((200, 200, 202, 204, 299)))


async def slow(visit, chance):
    return await visit.stays(0.02 + chance.random() * 0.3) and await visit.reply(200)


async def late(visit, chance):
    """About as long as the sender waits: either may be first."""
    return await visit.stays(0.3 + chance.random() * 0.8) and await visit.reply(200)


async def hang(visit, _):
    return await visit.stays(FOR_EVER)


async def drop(visit, _):
    """Taken, but the answer is lost."""
    visit.end()
    return False


async def reset(visit, _):
    visit.end()
    visit.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return False


# What is broken ends with its first octet: the sender may give it up at once.

async def cut_head(visit, _):
    visit.end()
    await visit.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    return False


async def cut_body(visit, _):
    visit.end()
    await visit.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
    return False


async def garbage(visit, chance):
    visit.end()
    await visit.write(bytes(chance.randrange(256) for _ in range(40)) + b"\r\n\r\n")
    return False


async def drip(visit, chance):
    """A whole answer, slowly."""
    text = answer(200, b"x" * 10)
    await visit.write(text[:-10])
    for _ in range(9):
        if not await visit.stays(chance.random() * 0.02):
            return False
        await visit.write(b"x")
    visit.end(200)
    await visit.write(b"x")
    return True


async def interim(visit, _):
    await visit.write(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n")
    return await visit.reply(200)


async def sly(visit, _):
    """Answers, and closes without a word: the next request may meet a dead end."""
    await visit.reply(200)
    return False


async def throttle(visit, _):
    return await visit.reply(429, "Retry-After: 1")


async def redirect(visit, _):
    return await visit.reply(302, "Location: /1")


async def gone(visit, chance):
    """Seldom: it disables the subscription."""
    return await visit.reply(410 if chance.random() < 0.1 else 200)


def plain(status):
    async def behave(visit, _):
        return await visit.reply(status)
    return behave


BEHAVIOURS = {
    "ok": ok, "slow": slow, "late": late, "hang": hang, "drop": drop, "reset": reset,
    "cut_head": cut_head, "cut_body": cut_body, "garbage": garbage, "drip": drip,
    "interim": interim, "sly": sly, "throttle": throttle, "redirect": redirect,
    "gone": gone, "missing": plain(404), "broken": plain(500),
    "unavailable": plain(503), "early": plain(425), "timeout": plain(408),
}


class Receiver:
    """`workers` returns the dispatchers that live now: {number: pid}."""

    def __init__(self, seed, workers):
        self.chance = random.Random(f"{seed}/receiver")
        self.workers = workers
        self.requests = []
        self.mixes = {}    # subscription: {behaviour: weight}
        self.loop = asyncio.new_event_loop()
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
        # Connections have it from the one that listens, so none misses its first.
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.sock.setblocking(False)
        self.thread = threading.Thread(target=self._run, name="receiver")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.sock.close()

    def url(self, number):
        return f"http://127.0.0.1:{self.sock.getsockname()[1]}/{number}"

    def behave(self, number, mix):
        self.mixes[number] = dict(mix)

    def heal(self):
        """From now on all is well everywhere."""
        self.mixes = {}

    # -- in the loop's thread --

    def _run(self):
        accepting = self.loop.create_task(self._accept())
        self.loop.run_forever()
        tasks = asyncio.all_tasks(self.loop) | {accepting}
        for task in tasks:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self.loop.close()

    async def _accept(self):
        serving = set()
        while True:
            sock, _ = await self.loop.sock_accept(self.sock)
            task = self.loop.create_task(Visit(self, sock).serve())
            serving.add(task)
            task.add_done_callback(serving.discard)

    def note(self, head, worker, began, wall):
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip()
                   for name, value in (line.split(":", 1) for line in lines)}
        number = int(path.rsplit("/", 1)[1])
        mix = self.mixes.get(number) or {"ok": 1}
        behaviour = self.chance.choices(list(mix), list(mix.values()))[0]
        request = Request(len(self.requests), number, worker, began, wall, behaviour,
                          method, headers, "")
        self.requests.append(request)
        return request
