"""format.py CLANG-FORMAT: all our C is laid out as .clang-format says."""

import subprocess
import sys

from sources import ROOT, c_files


def main():
    done = subprocess.run([sys.argv[1], "--dry-run", "-Werror", *map(str, c_files())],
                          cwd=ROOT, check=False)
    if done.returncode != 0:
        print("Run clang-format -i on these files.")
    sys.exit(1 if done.returncode else 0)


main()
