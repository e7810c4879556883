"""``kernelstream run`` on packed LIBSVM files, from the command to its exit, beside Vowpal Wabbit's linear learner.

    KERNELSTREAM_DATA=... python benchmarks/end_to_end.py

Vowpal Wabbit has a text format of its own and unpacks gzip only. So it is timed on a file already turned into its format and
packed with gzip (the turning is timed apart), while kernelstream reads the file as it is published, packed with xz. Both make
one pass and report the error of predictions made before learning. Each is run several times in turn, and the run that took
the least processor time counts: the clock shows how busy the machine was.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

COMMAND = [sys.executable, "-c", "import sys; from kernelstream.cli import main; sys.exit(main())"]
VOWPAL = [sys.executable, "-m", "vowpalwabbit"]
#: The labels of the two classes, as Vowpal Wabbit wants them.
POSITIVE = {"a9a": {1: 1, -1: -1}, "covtype.binary": {1: 1, 2: -1}}


def to_vowpal(source, target, labels):
    with lzma.open(source, "rt") as rows, gzip.open(target, "wt", compresslevel=6) as out:
        for row in rows:
            label, _, cells = row.rstrip().partition(" ")
            out.write(f"{labels[int(float(label))]} | {cells}\n")


def timed(command):
    """Processor seconds and seconds by the clock of a command, and what it wrote."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds, done


def kernelstream(source, *options):
    cpu, seconds, done = timed([*COMMAND, "run", str(source), "--json", *options])
    return cpu, seconds, json.loads(done.stdout)["error_rate"]


def vowpal(source):
    flags = [
        "-d",
        str(source),
        "--loss_function",
        "hinge",
        "--binary",
        "--holdout_off",
        "--no_stdin",
        "-b",
        "18",
        "--compressed",
    ]
    cpu, seconds, done = timed([*VOWPAL, *flags])
    return cpu, seconds, float(re.search(r"average loss = ([\d.]+)", done.stderr + done.stdout)[1])


def main():
    parser = argparse.ArgumentParser(description="End-to-end seconds beside Vowpal Wabbit.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    folder = os.environ.get("KERNELSTREAM_DATA")
    if not folder:
        sys.exit("set KERNELSTREAM_DATA to the folder of the data sets")
    for name, command in (("kernelstream", COMMAND), ("vowpalwabbit", VOWPAL)):
        cpu, seconds = min(timed([*command, "--version"])[:2] for _ in range(arguments.repeats))
        print(
            f"Starting Python and importing {name} takes {cpu:.2f} of the processor seconds, {seconds:.2f} by the clock."
        )
    print(
        "\n| data | learner | processor seconds | ratio | by the clock | error |\n|---|---|---|---|---|---|"
    )
    for name, labels in POSITIVE.items():
        source = Path(folder, f"{name}.libsvm.xz")
        with tempfile.TemporaryDirectory() as work:
            packed = Path(work, f"{name}.vw.gz")
            start = time.monotonic()
            to_vowpal(source, packed, labels)
            turned = time.monotonic() - start
            contenders = {
                "Vowpal Wabbit, linear": lambda packed=packed: vowpal(packed),
                "LinearPA": lambda source=source: kernelstream(source, "--learner", "LinearPA"),
                "FOGD, 100 features": lambda source=source: kernelstream(
                    source, "--learner", "FOGD", "--set", "n_components=100"
                ),
                "NOGD (budget 200)": lambda source=source: kernelstream(source, "--learner", "NOGD"),
                "the default": lambda source=source: kernelstream(source),
            }
            best = {}
            for _ in range(arguments.repeats):
                for contender, run in contenders.items():
                    try:
                        outcome = run()
                    except (FileNotFoundError, subprocess.CalledProcessError) as error:
                        print(f"{contender} does not run here: {error}", file=sys.stderr)
                        continue
                    best[contender] = min(best.get(contender, outcome), outcome, key=lambda o: o[0])
        base = next(iter(best.values()))[0]
        for contender, (seconds, error, *_) in best.items():
            print(
                f"| {name} | {contender} | {seconds:.2f} | {seconds / base:.2f} | {error:.2%} |", flush=True
            )
        print(f"| {name} | (turning the file into Vowpal Wabbit's format) | {turned:.2f} | | |")


if __name__ == "__main__":
    main()
