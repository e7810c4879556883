"""`kernelstream reproduce` killed at random moments and resumed, beside an undisturbed run: are the results files equal?

    KERNELSTREAM_DATA=... python benchmarks/kill_reproduce.py [--kills 2] [--seed 0] [--folder /tmp/kill] [NAME ...]

Names as for `kernelstream reproduce --quick`; by default everything. The process and its workers are killed with SIGKILL.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMAND = [
    sys.executable,
    "-c",
    "from kernelstream.cli import main; raise SystemExit(main())",
    "reproduce",
    "--quick",
]


def start(names: list[str], out: Path) -> subprocess.Popen[bytes]:
    with open(out.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(
            [*COMMAND, *names, "--out", str(out)], stderr=log, stdout=log, start_new_session=True
        )


def lines(out: Path) -> int:
    path = out / "results.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/kill-reproduce"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random(given.seed)
    began = time.monotonic()
    whole = given.folder / "whole"
    assert start(given.names, whole).wait() == 0
    seconds = time.monotonic() - began
    total = lines(whole)
    print(f"undisturbed: {total:,} trials in {seconds:.0f} s")
    killed = given.folder / "killed"
    for at in sorted(draw.uniform(0.02, 0.98) for _ in range(given.kills)):
        process = start(given.names, killed)
        while lines(killed) < at * total and process.poll() is None:
            time.sleep(draw.uniform(0.01, 0.3))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        print(f"killed with {lines(killed):,} lines written")
    assert start(given.names, killed).wait() == 0
    sums = [hashlib.sha256((folder / "results.jsonl").read_bytes()).hexdigest() for folder in (whole, killed)]
    print(f"resumed to the end: {lines(killed):,} trials\nwhole  {sums[0]}\nkilled {sums[1]}")
    print("the results files are equal" if sums[0] == sums[1] else "THE RESULTS FILES DIFFER")
    raise SystemExit(sums[0] != sums[1])


if __name__ == "__main__":
    main()
