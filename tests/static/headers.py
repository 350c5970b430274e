"""headers.py CC: each header compiles alone, and twice."""

import subprocess
import sys

from sources import Report, files, ROOT

PACKAGES = ("libpq", "libcurl", "libcrypto", "json-c", "libevent")


def main():
    report = Report("A header includes what it uses, or declares `struct x;`, and has a guard.")
    cflags = subprocess.run(["pkg-config", "--cflags", *PACKAGES], text=True,
                            check=True, stdout=subprocess.PIPE).stdout.split()
    command = [sys.argv[1], "-std=c17", "-D_POSIX_C_SOURCE=200809L", "-D_DEFAULT_SOURCE",
               "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
               f"-I{ROOT}/include", f"-I{ROOT}/src", *cflags, "-x", "c", "-"]
    for path in files("include/**/*.h", "src/**/*.h"):
        # A declaration of our own, since an empty file is not ISO C.
        source = f'#include "{path}"\n#include "{path}"\nextern int nothing;\n'
        done = subprocess.run(command, input=source, text=True, check=False,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            report.add(path, 1, "does not compile alone:")
            print(done.stderr)
    report.finish()


main()
