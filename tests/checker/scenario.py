"""What a round is made of, drawn by Hypothesis: the same seed, the same scenario.

Time is real, so a round cannot be shrunk, and what its threads do in one instant
differs from run to run; what they set out to do does not.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from .faults import KINDS
from .operating import ORDERS

# Hypothesis begins with the simplest examples and grows from there.
EXAMPLES = 12

STORM = ("slow", "late", "hang", "drop", "reset", "cut_head", "cut_body", "garbage",
         "drip", "interim", "sly", "throttle", "redirect", "missing", "broken",
         "unavailable", "early", "timeout", "gone")

waits = st.floats(0.05, 1.2).map(lambda x: round(x, 3))
pauses = st.floats(0.3, 4.0).map(lambda x: round(x, 3))
slots = st.integers(0, 20)

# Most requests are answered well, or nothing would ever come to an end; where that
# takes its time, lanes grow deep.
mixes = st.builds(
    lambda base, storm: {**storm, base: max(3, 2 * sum(storm.values()))},
    st.sampled_from(("ok", "ok", "slow")),
    st.dictionaries(st.sampled_from(STORM), st.integers(1, 4), max_size=6))

subscriptions = st.fixed_dictionaries({
    "event_types": st.sampled_from((["*"], ["a.*"], ["a.one", "b"], ["b"])),
    "ordering": st.sampled_from(("asset", "asset", "asset", "none")),
    "on_dead": st.sampled_from(("skip", "skip", "hold")),
    "max_in_flight": st.sampled_from((1, 2, 5, 20)),
    "max_attempts": st.sampled_from((2, 4, 12, 40)),
    "retry_base_ms": st.sampled_from((10, 40, 150)),
    "retry_cap_ms": st.sampled_from((200, 1000, 1500)),
    "timeout_ms": st.sampled_from((400, 600, 900)),
    "rate_per_second": st.sampled_from((None, None, None, 2, 10)),
    "circuit_after": st.sampled_from((0, 3, 20)),
})

# What stops a subscription is undone as often, and limits change most.
KINDS_OF_ORDER = [*ORDERS, "pause", "pause", "resume", "resume", "resume", "enable", "enable",
                  "patch", "patch", "patch", "retry", "discard"]

orders = st.tuples(st.sampled_from(KINDS_OF_ORDER), slots,
                   waits.map(lambda wait: wait / 2), st.integers(0, 1000))
behaviours = st.tuples(slots, waits, mixes)
faults = st.tuples(st.sampled_from(sorted(KINDS)), slots,
                   waits.map(lambda wait: wait * 1.5), pauses)


@dataclass
class Scenario:
    seed: int
    subscriptions: list            # of lists, one for each tenant
    rate: int                      # events a second, all posters together
    mixes: list
    orders: list = field(default_factory=list)
    behaviours: list = field(default_factory=list)
    faults: list = field(default_factory=list)


def scenarios(number, steps):
    """Those of seed `number`, with about `steps` faults, orders and the like."""
    def some(strategy, n):
        return st.lists(strategy, min_size=n, max_size=n)
    return st.builds(
        Scenario, seed=st.just(number),
        subscriptions=st.lists(some(subscriptions, 3), min_size=2, max_size=4),
        rate=st.sampled_from((30, 60, 90)), mixes=some(mixes, 12),
        orders=some(orders, 2 * steps), behaviours=some(behaviours, steps),
        faults=some(faults, steps))


def draw(number, steps):
    """The scenario of a seed."""
    drawn = []

    @seed(number)
    @settings(max_examples=EXAMPLES, phases=[Phase.generate], database=None, deadline=None,
              suppress_health_check=list(HealthCheck))
    @given(scenarios(number, steps))
    def collect(scenario):
        drawn.append(scenario)

    collect()
    return drawn[-1]
