"""One round: a world, a storm, and the calm in which everything has to come right."""

import contextlib
import time

from integration.daemons import Cli
from integration.postgres import Cluster

from .faults import Agenda
from .history import Change, History
from .judge import judge
from .operating import Operator
from .posting import App
from .receiver import Receiver
from .scenario import draw
from .world import CLUSTER, MARGIN, World

INGESTS, DISPATCHERS, APPS = 2, 3, 3
SETTLE = 90


@contextlib.contextmanager
def ground():
    """What rounds take place on: a cluster and the name of a migrated database."""
    with Cluster(**CLUSTER) as cluster:
        database = cluster.create()
        database.close()
        Cli({})("migrate", f"--database={database.conninfo}")
        yield cluster, database.name


def play(seed, seconds, ground, folder):
    """One round with what its seed draws: its history, and what is wrong with it.

    A history with violations is kept in the folder, beside the programs' logs.
    """
    scenario = draw(seed, int(seconds))
    history = Round(scenario, *ground, folder).run(seconds)
    violations = judge(history)
    if violations:
        history.save(folder / "history.json")
    return history, violations


def explain(history, violations, most=10):
    """For people: the violations, each with the requests that show it."""
    lines = [f"seed {history.seed}: {len(violations)} violations"]
    for violation in violations[:most]:
        lines.append(str(violation))
        for number in violation.requests:
            request = history.requests[number]
            lines.append(f"    {request.number}: worker {request.worker}, wall"
                         f" {request.wall:.6f}, {request.began:.6f} to {request.ended},"
                         f" {request.behaviour}, status {request.status},"
                         f" position {request.position}, attempt {request.attempt}")
    return "\n".join(lines)


class Round:
    def __init__(self, scenario, cluster, template, folder):
        self.scenario = scenario
        self.history = History(scenario.seed, MARGIN)
        self.world = World(cluster, template, folder)
        self.receiver = Receiver(scenario.seed, lambda: self.world.living)

    def run(self, seconds):
        """Returns the history.  Raises if a program does not do as it must."""
        try:
            with self.receiver:
                self._prepare()
                self._storm(seconds)
                self._calm()
            self.history.requests = self.receiver.requests
            self.world.record(self.history)
        finally:
            self.world.close()
        return self.history

    def _prepare(self):
        self.world.begin(INGESTS, DISPATCHERS)
        mixes = iter(self.scenario.mixes)
        for index, theirs in enumerate(self.scenario.subscriptions):
            tenant = f"tenant-{index}"
            self.world.make_tenant(tenant)
            for fields in theirs:
                self._subscribe(tenant, fields, next(mixes))

    def _subscribe(self, tenant, fields, mix):
        number = len(self.history.subscriptions)
        asked = time.monotonic()
        self.history.subscriptions.append(self.world.subscribe(
            number, tenant, self.receiver.url(number), fields))
        self.history.changes += [
            Change(number, name, value, asked, time.monotonic())
            for name, value in {**fields, "state": "active"}.items()]
        self.receiver.behave(number, mix)

    def _storm(self, seconds):
        began = time.monotonic()
        agenda = Agenda(self.world, self.scenario.faults, began)
        apps = [App(f"app{n}", self.world, self.scenario, self.history, APPS)
                for n in range(APPS)]
        operator = Operator(self.world, self.scenario, self.history, self.receiver)
        crew = [*apps, operator]
        for member in crew:
            member.start()
        try:
            while agenda.next_at() < began + seconds:
                self._wait_until(agenda.next_at(), crew)
                agenda.step()
            self._wait_until(began + seconds, crew)
        finally:
            agenda.mend()
            for member in crew:
                member.stopping.set()
            for member in crew:
                member.join()
        self._check(crew)
        operator.calm()
        self.history.faults = agenda.done
        self.history.posts = [post for app in apps for post in app.posts]

    def _wait_until(self, at, crew):
        while time.monotonic() < at:
            self._check(crew)
            crew[0].stopping.wait(min(0.2, max(0, at - time.monotonic())))

    @staticmethod
    def _check(crew):
        for member in crew:
            if member.failure is not None:
                raise member.failure

    def _calm(self):
        self.receiver.heal()
        self.history.settled = self.world.settle(SETTLE)
        self.world.end()
