"""Each test's file is named in the CMakeLists.txt beside it, or it never runs."""

import re

from sources import ROOT, Report, files

# Folder, how its tests are called, and the function that registers one.
FOLDERS = (
    ("tests/unit", "test_*.c", "unit"),
    ("tests/integration", "test_*.py", "integration"),
    ("tests/checker", "test_*.py", "checker"),
    ("tests/fuzz", "fuzz_*.c", "fuzz"),
)


def main():
    report = Report("A test that is not registered is not a test.")
    for folder, pattern, function in FOLDERS:
        listed = (ROOT / folder / "CMakeLists.txt").read_text()
        for path in files(f"{folder}/{pattern}"):
            name = path.stem.split("_", 1)[1]
            if not re.search(rf"^\s*{function}\({name}\b", listed, re.MULTILINE):
                report.add(path, 1, f"add {function}({name} ...) to {folder}/CMakeLists.txt")
    report.finish()


main()
