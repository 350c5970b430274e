"""Waiting for what another process will do, without sleeping blindly."""

import time

POLL = 0.01


def until(condition, sentence, seconds=10):
    """Poll `condition` until it is true and return its value.

    `sentence` says what is waited for; a failure repeats it.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {sentence} (last: {value!r})")
        time.sleep(POLL)


def never(condition, sentence, seconds=0.5):
    """Watch for `seconds` that `condition` stays false."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            raise AssertionError(f"must not be: {sentence} (seen: {value!r})")
        time.sleep(POLL)


def dawdle(seconds):
    """Take time to answer, as a slow subscriber does.  Never to wait for something."""
    time.sleep(seconds)
