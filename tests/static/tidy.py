"""tidy.py CLANG-TIDY BUILD-FOLDER [FILE...]: clang-tidy over what the build compiles."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sources import ROOT, Report

JOBS = 2


def ours(build):
    """The compiled files that somebody wrote."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(build):
            yield path


def main():
    tidy, build = sys.argv[1], Path(sys.argv[2]).resolve()
    chosen = [Path(name).resolve() for name in sys.argv[3:]] or sorted(set(ours(build)))

    def check(path):
        return path, subprocess.run([tidy, "-p", str(build), "--quiet", str(path)], text=True,
                                    check=False, capture_output=True)

    report = Report("Why a check is off stands in .clang-tidy; mend the code rather than"
                    " add NOLINT.")
    with ThreadPoolExecutor(JOBS) as pool:
        for path, done in pool.map(check, chosen):
            if done.returncode != 0:
                report.add(path, 1, "clang-tidy:")
                print(done.stdout or done.stderr)
    report.finish()


main()
