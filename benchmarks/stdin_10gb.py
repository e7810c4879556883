"""A large stream through standard input: rows a second, and memory as it goes.

    python benchmarks/stdin_10gb.py --gigabytes 10

One process makes LIBSVM text: blocks of rows, each written again with other labels and one digit changed, so that making
them costs little. Another is ``kernelstream run - --format libsvm``; its memory is read from /proc while it works.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

FEATURES = 60
BLOCK = 40_000


def write(out, size):
    """Rows of about 400 bytes, 40 of 60 features, until there are ``size`` bytes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(BLOCK, FEATURES)) * (rng.random((BLOCK, FEATURES)) < 0.66)
    signs = np.where(X[:, 0] * X[:, 1] + X[:, 2] ** 2 > 0.5, "+1", "-1")
    rows = []
    for x, sign in zip(X, signs, strict=True):
        cells = " ".join(f"{d + 1}:{x[d]:.4f}" for d in np.flatnonzero(x))
        rows.append(f"{sign} {cells}\n".encode())
    done, turn = 0, 0
    while done < size:
        order = np.random.default_rng(turn).permutation(BLOCK)
        digit = b"%d" % (turn % 10)
        block = b"".join(rows[i] for i in order).replace(b"7 ", digit + b" ")
        block = block[: block.rfind(b"\n", 0, size - done) + 1] if done + len(block) > size else block
        if not block:
            break
        out.write(block)
        done += len(block)
        turn += 1


def memory(pid, what):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    return 0


def main():
    parser = argparse.ArgumentParser(
        description="Feed kernelstream a large stream through its standard input."
    )
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--learner", default="NOGD")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--write", type=int, help="only write this many bytes to standard output")
    arguments = parser.parse_args()
    if arguments.write is not None:
        return write(sys.stdout.buffer, arguments.write)

    size = int(arguments.gigabytes * 1e9)
    settings = [word for setting in arguments.set for word in ("--set", setting)]
    command = [sys.executable, "-c", "import sys; from kernelstream.cli import main; sys.exit(main())"]
    command += ["run", "-", "--format", "libsvm", "--json", "--learner", arguments.learner, *settings]
    writer = subprocess.Popen([sys.executable, __file__, "--write", str(size)], stdout=subprocess.PIPE)
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    print("| GB read | rows a second | memory, MB | highest so far, MB |\n|---|---|---|---|", flush=True)
    passed, rows, start = 0, 0, time.monotonic()
    marks = [g * 1e9 for g in (1, 2, 5, 10, 20, 50) if g <= arguments.gigabytes]
    while piece := os.read(writer.stdout.fileno(), 1 << 20):
        reader.stdin.write(piece)
        passed += len(piece)
        rows += piece.count(b"\n")
        if marks and passed >= 0.9999 * marks[0]:
            speed = rows / (time.monotonic() - start)
            now, peak = (memory(reader.pid, what) / 1e6 for what in ("VmRSS", "VmHWM"))
            print(f"| {marks.pop(0) / 1e9:.0f} | {speed:,.0f} | {now:.0f} | {peak:.0f} |", flush=True)
    reader.stdin.close()
    result = json.loads(reader.stdout.read())
    seconds = time.monotonic() - start
    _, status, used = os.wait4(reader.pid, 0)
    assert (status, writer.wait()) == (0, 0)
    cpu, rounds = used.ru_utime + used.ru_stime, result["rounds"]
    print(
        f"\n{rounds:,} rows ({size / 1e9:g} GB) in {seconds:.0f} s by the clock, {cpu:.0f} s of the processor:"
    )
    print(
        f"{rounds / seconds:,.0f} rows/s by the clock, {rounds / cpu:,.0f} rows/s of the processor, highest memory"
    )
    print(
        f"{used.ru_maxrss / 1e3:.0f} MB; {result['microseconds_per_row']:.2f} µs a row in {arguments.learner} (by the clock)"
    )
    return None


if __name__ == "__main__":
    main()
