"""demo: the main job, shown on one machine.  scripts/demo starts it."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from programs import Failure
from show import say, title
from stack import SIGNALS, Stack
from story import LOSS, Story


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


def serve(stack):
    ingest = f"http://127.0.0.1:{stack.api.connection.port}"
    receiver = f"http://127.0.0.1:{stack.receiver.connection.port}"
    title("It goes on until Ctrl-C")
    say(f"""\
  ingest     {ingest}
  receiver   {receiver}/receipts
  key        {stack.key}
  database   psql -h {stack.postgres.dir} -U postgres postrider
  logs       {stack.folder}/*.log

  Post an event of your own, and see it arrive:

    curl -sS {ingest}/v1/events \\
      -H 'Authorization: Bearer {stack.key}' \\
      -H 'Content-Type: application/json' \\
      -d '{{"type": "pump.inspected", "asset": "pump-1", "data": {{"bar": 6.1}}}}'
    curl -sS '{receiver}/receipts?path={LOSS}&events=1'
    psql -h {stack.postgres.dir} -U postgres postrider -c 'TABLE postrider.deliveries'
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
