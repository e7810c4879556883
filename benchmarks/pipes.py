"""How long a row of a pipe waits for its answer, and how many rows per second a fast pipe takes.

python benchmarks/pipes.py [before=PYTHON] > docs/results/pipes.md

Each Python has a kernelstream; *after* is the one that runs this. `kernelstream predict MODEL - ` and
`kernelstream run - --predictions /dev/stdout` with NOGD, six numbers per row, in CSV and in JSON lines.

Latency: rows come one by one, every 5 ms; the time from writing a row to reading its answer is taken. The first rows, by which
`run` tells what columns are, are written before and not measured. Beside it stands a program of five lines that gives each line
back (`echo`): what the machine itself takes for a row, in the same seconds.

Throughput: all rows are there at once; processor time of the reader, its start left out by the difference of two runs. Inputs are
not scaled, which the version before could not do. `run` now counts all metrics and two baselines, and did not before.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROWS, FEW, SLOW, FIRST = 400_000, 50_000, 400, 1200
PROGRAM = "import sys; from kernelstream.cli import main; sys.exit(main())"
ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()"
FORMATS = {"csv": "CSV", "jsonl": "JSON lines"}


def texts(rows, seed):
    """The same rows per format: the names of the columns or nothing, and lines with labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 6)).round(4)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    names = "abcdef"
    made = {"csv": ["a,b,c,d,e,f,y"], "jsonl": []}
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        made["csv"].append(",".join(map(str, row)) + f",{label}")
        pairs = ", ".join(f'"{name}": {value}' for name, value in zip(names, row, strict=True))
        made["jsonl"].append(f'{{{pairs}, "y": {label}}}')
    return made


def argv_of(python, command, model, kind, before=False):
    """The command that answers a pipe."""
    given = ["predict", model, "-"]
    if command == "run":
        given = ["run", "-", "--learner", "NOGD", "--predictions", "/dev/stdout", "--quiet"]
        given += ["--task", "classification", *([] if before else ["--no-scale"])]
    return [python, "-c", PROGRAM, *given, "--format", kind]


def latencies(argv, lines, first):
    """Seconds from writing a row to reading its answer, of the rows after the first ones.

    A version that holds rows back until the end has its longest waits then; that is what is measured.
    """
    written, answered = [], []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:

        def read():
            held = b""
            while piece := process.stdout.read(1 << 16):
                *whole, held = (held + piece).split(b"\n")
                answered.extend([time.perf_counter()] * len(whole))

        reader = threading.Thread(target=read)
        reader.start()
        names = lines[0].startswith("a,")
        process.stdin.write("".join(f"{line}\n" for line in lines[: first + names]).encode())
        for _ in range(100):  # its start is not measured here
            time.sleep(0.1)
            if len(answered) >= first:
                break
        for line in lines[first + names :]:
            written.append(time.perf_counter())
            process.stdin.write(f"{line}\n".encode())
            time.sleep(0.005)
        process.stdin.close()
        reader.join()
    return np.array(answered[first : first + len(written)]) - np.array(written)


def processor_time(argv, lines):
    """Seconds of processor time to answer all rows of a pipe."""
    text = "".join(f"{line}\n" for line in lines).encode()
    before = os.times()
    subprocess.run(argv, input=text, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


MACHINE = "Machine: [two cores of a busy server](index.md#the-machine). Made by `python benchmarks/pipes.py`."


def main():
    pythons = dict(argument.split("=", 1) for argument in sys.argv[1:]) | {"after": sys.executable}
    print(f"# Rows of a pipe: latency and throughput\n\n{MACHINE}\n\n{__doc__.split(chr(10) * 2, 2)[2]}")
    print(
        f"*Before* is the version that answered full chunks only, so a row waits for others or for the end of the input. "
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.\n"
    )
    print(
        "| command | format | version | median ms | p99 ms | largest ms | rows per second of processor time |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    made = texts(ROWS, 0)
    with tempfile.TemporaryDirectory() as folder:
        waits = 1e3 * latencies([sys.executable, "-c", ECHO], made["jsonl"][:SLOW], 1)
        print("| echo | | | {:.2f} | {:.2f} | {:.2f} | |".format(*np.percentile(waits, [50, 99, 100])))
        for command in ("predict", "run"):
            for kind, label in FORMATS.items():
                lines = made[kind]
                for name, python in pythons.items():
                    model = str(Path(folder, f"{name}.{kind}.safetensors"))
                    if command == "predict":
                        train = Path(folder, f"train.{kind}")
                        train.write_text("".join(f"{line}\n" for line in lines[:3000]))
                        argv = [
                            python,
                            "-c",
                            PROGRAM,
                            "run",
                            str(train),
                            "--learner",
                            "NOGD",
                            "--save",
                            model,
                        ]
                        argv += [] if name == "before" else ["--no-scale"]  # it had no scaling
                        subprocess.run([*argv, "--quiet"], check=True, stdout=subprocess.DEVNULL)
                    argv = argv_of(python, command, model, kind, name == "before")
                    first = 1 if command == "predict" else FIRST
                    waits = 1e3 * latencies(argv, lines[: first + SLOW], first)
                    few, whole = (
                        min(processor_time(argv, lines[:rows]) for _ in range(2)) for rows in (FEW, ROWS)
                    )
                    figures = " | ".join(f"{wait:.2f}" for wait in np.percentile(waits, [50, 99, 100]))
                    rate = (ROWS - FEW) / (whole - few)
                    print(f"| {command} | {label} | {name} | {figures} | {rate:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
