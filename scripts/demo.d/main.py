"""demo: the main job, shown on one machine.  scripts/demo starts it."""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from programs import Failure
from show import say, title
from stack import SIGNALS, Stack
from story import Story


class Interrupted(Exception):
    pass


def on_signal(number, _):
    raise Interrupted(signal.Signals(number).name)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/demo")
    parser.add_argument("--serve", action="store_true",
                        help="leave it running until Ctrl-C")
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("POSTRIDER_TEST_DATA"),
                        help="where events/github.ndjson is")
    return parser.parse_args()


def write_env(stack):
    """What a shell needs to talk to the demo; the key stays out of every argv."""
    auth = stack.folder / "auth"
    env = stack.folder / "env"
    for path in (auth, env):
        path.touch(mode=0o600)
    auth.write_text(f"Authorization: Bearer {stack.key}\n")
    values = {
        "INGEST": f"http://127.0.0.1:{stack.api.connection.port}",
        "RECEIVER": f"http://127.0.0.1:{stack.receiver.connection.port}",
        "AUTH": auth,
        "PGHOST": stack.postgres.dir, "PGUSER": "postgres", "PGDATABASE": "postrider",
        "POSTRIDER_DATABASE": stack.postgres.conninfo("postrider"),
        "POSTRIDER_SECRET_KEY_FILE": stack.folder / "secret.key",
        "PATH": f"{stack.bin}:{os.environ['PATH']}",
    }
    env.write_text("".join(f"export {name}={shlex.quote(str(value))}\n"
                           for name, value in values.items()))
    return env, values


def serve(stack):
    env, values = write_env(stack)
    title("It goes on until Ctrl-C")
    say(f"""\
  ingest     {values["INGEST"]}
  receiver   {values["RECEIVER"]}/receipts
  key        {stack.key}
  database   psql -h {stack.postgres.dir} -U postgres postrider
  logs       {stack.folder}/*.log

  For the tour in README.md, in another terminal:

    . {env}
""")
    while True:
        stack.check()
        time.sleep(1)


def show(stack, args):
    title("Starting")
    stack.start()
    story = Story(stack)
    story.pumps()
    story.github(Path(args.data) / "events" / "github.ndjson" if args.data else None)
    wrong = story.figures.wrong
    title(f"{wrong} figures are wrong" if wrong else "Every figure is as it must be")
    if args.serve and not wrong:
        serve(stack)
    return 1 if wrong else 0


def main():
    args = arguments()
    for name in SIGNALS:
        signal.signal(name, on_signal)
    try:
        with Stack() as stack:
            return show(stack, args)
    except Interrupted as signal_name:
        say(f"\nStopped by {signal_name}; nothing is left running.")
        return 0 if args.serve else 130
    except (Failure, OSError) as failure:
        print(f"\ndemo: {failure}", file=sys.stderr)
        return 1


sys.exit(main())
