"""The apps: threads that post events until each is answered for certain."""

import http.client
import json
import random
import threading
import time

from integration.api import Api
from integration.wait import dawdle

from .history import Post, Try
from .world import PATIENCE

# How long an app asks again for the answer to one event, once it is to stop.
LAST_WAIT = 40

TYPES = ("a.one", "a.two", "b")

# Bytes that anything but a copy would change.
ODD = ('"x":1.0', '"x":1E2', '"x":-0.0', '"x":123456789012345678901234567890',
       '"x": "\\ud83d\\ude00"', '"x":"\\u0000y"', '"x":"\u2028é😀"', '"x" : [ ]', '"x":null')


class App(threading.Thread):
    """Posts at its share of the rate; notes each event with all tries in `posts`."""

    def __init__(self, name, world, scenario, history, share):
        super().__init__(name=name)
        self.world = world
        self.history = history
        self.chance = random.Random(f"{scenario.seed}/{name}")
        self.gap = share / scenario.rate
        self.stopping = threading.Event()
        self.posts = []
        self.taken = set()
        self.serial = 0
        self.batches = 0
        self.failure = None

    def run(self):
        try:
            while not self.stopping.wait(self.chance.expovariate(1 / self.gap)):
                self._act()
        except Exception as failure:  # the round reports it
            self.failure = failure

    def _act(self):
        dice = self.chance.random()
        if dice < 0.06:
            self._post_batch()
        elif dice < 0.09 and self.posts:
            self._repeat()
        else:
            self._submit([self._event(self._tenant())])

    # -- what is posted --

    def _tenant(self):
        return self.chance.choice(sorted(self.world.keys))

    def _event(self, tenant):
        self.serial += 1
        return Post(tenant, self._id(tenant), self.chance.choice(TYPES), self._asset(),
                    self._data(), self._named(tenant))

    def _id(self, tenant):
        """Two tenants may well use one id."""
        found = f"{self.name}:{self.serial}"
        if self.posts and self.chance.random() < 0.1:
            other = self.chance.choice(self.posts).id
            found = found if (tenant, other) in self.taken else other
        self.taken.add((tenant, found))
        return found

    def _asset(self):
        dice = self.chance.random()
        if dice < 0.1:
            return None
        if dice < 0.6:
            return f"hot-{self.chance.randrange(3)}"
        return f"cold/{self.chance.randrange(300)}"

    def _data(self):
        fat = "." * self.chance.randrange(20000, 60000) if self.chance.random() < 0.01 else ""
        return (f'{{"serial":"{self.name}/{self.serial}",'
                f' {self.chance.choice(ODD)},"fat":"{fat}"}}')

    def _named(self, tenant):
        if self.chance.random() < 0.9:
            return None
        ours = [s.number for s in self.history.subscriptions if s.tenant == tenant]
        return sorted(self.chance.sample(ours, self.chance.randint(1, len(ours))))

    # -- how --

    def _body(self, post):
        ids = {s.number: str(s.id) for s in self.history.subscriptions}
        members = {"id": post.id, "type": post.type}
        if post.asset is not None:
            members["asset"] = post.asset
        if post.named is not None:
            members["subscriptions"] = [ids[number] for number in post.named]
        head = json.dumps(members)[:-1]
        return f'{head}, "data":{post.data}}}'.encode()

    def _post_batch(self):
        """A few events, or many of one asset: a deep lane."""
        self.batches += 1
        tenant, is_deep = self._tenant(), self.chance.random() < 0.25
        size = self.chance.randint(20, 40) if is_deep else self.chance.randint(2, 6)
        posts = [self._event(tenant) for _ in range(size)]
        for line, post in enumerate(posts):
            post.batch, post.line = f"{self.name}/{self.batches}", line
            if is_deep:
                post.asset = posts[0].asset
        self._submit(posts)

    def _repeat(self):
        """As an app does that has forgotten the answer."""
        post = self.chance.choice(self.posts)
        if post.batch is None and post.acknowledged:
            post.tries.append(self._ask([post]))

    def _submit(self, posts):
        """Ask until the answer is certain; now and then give up a refused one."""
        self.posts += posts
        deadline = None
        while True:
            tried = self._ask(posts)
            for post in posts:
                post.tries.append(tried)
            if tried.status not in (None, 503, 504):
                return
            if posts[0].was_refused and self.chance.random() < 0.3:
                return
            if self.stopping.is_set():
                deadline = deadline or time.monotonic() + LAST_WAIT
                if time.monotonic() > deadline:
                    return
            dawdle(0.05 + self.chance.random() * 0.2)

    def _ask(self, posts):
        seat = self.chance.choice(self.world.ingests)
        api = Api(seat.port, self.world.keys[posts[0].tenant], seconds=PATIENCE)
        asked, status = time.monotonic(), None
        try:
            if posts[0].batch is None:
                status = api.post("/v1/events", self._body(posts[0])).status
            else:
                lines = b"\n".join(self._body(post) for post in posts)
                status = api.post("/v1/events/batch", lines,
                                  headers={"Content-Type": "application/x-ndjson"}).status
        except (OSError, http.client.HTTPException):
            pass
        return Try(asked, time.monotonic(), status)
