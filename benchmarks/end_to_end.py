"""``kernelstream run`` on packed LIBSVM files, from the command to its exit, beside Vowpal Wabbit's linear learner.

    KERNELSTREAM_DATA=... python benchmarks/end_to_end.py

Vowpal Wabbit has a text format of its own and unpacks gzip only. So it is timed on a file already converted to its format and
packed with gzip (the conversion is timed apart), while kernelstream reads the file as it is published, packed with xz. Both make
one pass and report the error of predictions made before learning. Processor seconds, which other work on the machine disturbs
less than the clock; each is run several times in turn and the least counts. Starting, which for kernelstream is
mostly the import of SciPy and scikit-learn, is shown apart.
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

#: The command, which prints at the end the time that it took after the imports.
CODE = """
import sys, time
from kernelstream.cli.imports import import_scikit_learn
import_scikit_learn()
from kernelstream.cli import curves, display, main, models, reading, run
from kernelstream import persistence, runner
start = time.process_time()
code = main()
print(time.process_time() - start, file=sys.stderr)
sys.exit(code)
"""
COMMAND = [sys.executable, "-c", CODE]
VOWPAL = [sys.executable, "-m", "vowpalwabbit"]
#: The labels of the two classes, as Vowpal Wabbit wants them.
POSITIVE = {"a9a": {1: 1, -1: -1}, "covtype.binary": {1: 1, 2: -1}}


def to_vowpal(source, target, labels):
    with lzma.open(source, "rt") as rows, gzip.open(target, "wt", compresslevel=6) as out:
        for row in rows:
            label, _, cells = row.rstrip().partition(" ")
            out.write(f"{labels[int(float(label))]} | {cells}\n")


def timed(command):
    """Processor seconds of a command, and what it wrote."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done


def kernelstream(source, *options):
    """Processor seconds after the imports and in all, and the error."""
    everything, done = timed([*COMMAND, "run", str(source), "--json", *options])
    return float(done.stderr.split()[-1]), everything, json.loads(done.stdout)["error_rate"]


def vowpal(source):
    flags = "--loss_function hinge --binary --holdout_off --no_stdin -b 18 --compressed"
    everything, done = timed([*VOWPAL, "-d", str(source), *flags.split()])
    start, _ = timed([*VOWPAL, "--version"])
    loss = re.search(r"average loss = ([\d.]+)", done.stderr + done.stdout)
    return max(everything - start, 0.01), everything, float(loss[1])


def main():
    parser = argparse.ArgumentParser(description="End-to-end seconds beside Vowpal Wabbit.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    folder = os.environ.get("KERNELSTREAM_DATA")
    if not folder:
        sys.exit("set KERNELSTREAM_DATA to the folder of the data sets")
    print(
        "| data | learner | processor seconds after start | ratio | in all | error |\n|---|---|---|---|---|---|"
    )
    for name, labels in POSITIVE.items():
        source = Path(folder, f"{name}.libsvm.xz")
        with tempfile.TemporaryDirectory() as work:
            packed = Path(work, f"{name}.vw.gz")
            start = time.process_time()
            to_vowpal(source, packed, labels)
            conversion = time.process_time() - start
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
        for contender, (seconds, everything, error) in best.items():
            ratio = seconds / base
            print(
                f"| {name} | {contender} | {seconds:.2f} | {ratio:.1f} | {everything:.2f} | {error:.2%} |",
                flush=True,
            )
        print(f"| {name} | (conversion to Vowpal Wabbit's format) | {conversion:.2f} | | | |", flush=True)


if __name__ == "__main__":
    main()
