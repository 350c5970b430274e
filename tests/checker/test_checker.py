"""A short round of the checker; scripts/soak plays as many as you have time for."""

import os
import random

from .rounds import explain, ground, play

SECONDS = 10


def test_a_storm_breaks_no_promise(tmp_path):
    seed = int(os.environ.get("POSTRIDER_SEED", random.randrange(2**32)))
    print("replay with POSTRIDER_SEED =", seed)
    with ground() as here:
        history, violations = play(seed, SECONDS, here, tmp_path)
    assert not violations, explain(history, violations)
    assert history.faults and any(post.acknowledged for post in history.posts)
