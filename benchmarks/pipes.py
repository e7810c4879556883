"""How long a row of a pipe waits for its answer, and how many rows per second `kernelstream predict MODEL -` takes.

python benchmarks/pipes.py before=/path/to/python after=/path/to/python > docs/results/pipes.md

Each Python has a kernelstream. Latency: rows come one by one, every 5 ms; the time from writing a row to reading its answer is
taken. Throughput: all rows are written at once; processor time of the reader, its start left out by the difference of two runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROWS, SLOW = 300_000, 300
PROGRAM = "import sys; from kernelstream.cli import main; sys.exit(main())"


def texts(rows, seed):
    """The same rows per format: a header or nothing, and lines without labels; and a training file's lines."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 6)).round(4)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    names = "abcdef"
    made = {"csv": (",".join(names), [], []), "jsonl": ("", [], []), "libsvm": ("", [], [])}
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        line = ",".join(map(str, row))
        made["csv"][1].append(line)
        made["csv"][2].append(f"{line},{label}")
        pairs = ", ".join(f'"{name}": {value}' for name, value in zip(names, row, strict=True))
        made["jsonl"][1].append(f"{{{pairs}}}")
        made["jsonl"][2].append(f'{{{pairs}, "y": {label}}}')
        pairs = " ".join(f"{i}:{value}" for i, value in enumerate(row, 1))
        made["libsvm"][1].append(f"0 {pairs}")
        made["libsvm"][2].append(f"{label} {pairs}")
    return made


def latencies(python, model, kind, header, lines):
    """Seconds from writing a row to reading its answer."""
    argv = [python, "-c", PROGRAM, "predict", model, "-", "--format", kind]
    written, answered = [], []
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:

        def read():
            for _ in iter(process.stdout.readline, b""):
                answered.append(time.perf_counter())

        reader = threading.Thread(target=read)
        reader.start()
        process.stdin.write((header + "\n" if header else "").encode())
        process.stdin.write(f"{lines[0]}\n".encode())
        for _ in range(300):  # its start is not measured here
            time.sleep(0.1)
            if answered:
                break
        for line in lines[1:]:
            written.append(time.perf_counter())
            process.stdin.write(f"{line}\n".encode())
            time.sleep(0.005)
        process.stdin.close()
        reader.join()
    return np.array(answered[1:]) - np.array(written)


def processor_time(python, model, kind, header, lines):
    """Seconds of processor time to predict all rows from a pipe."""
    argv = [python, "-c", PROGRAM, "predict", model, "-", "--format", kind]
    text = "\n".join([*([header] if header else []), *lines, ""]).encode()
    before = os.times()
    subprocess.run(argv, input=text, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    pythons = dict(argument.split("=", 1) for argument in sys.argv[1:]) or {"after": sys.executable}
    print(
        "| format | version | median ms | p99 ms | rows per second of processor time |\n|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for kind, (header, lines, labelled) in texts(ROWS, 0).items():
            train = Path(folder, f"train.{kind}")
            first = [f"{header},y"] if header else []
            train.write_text("\n".join([*first, *labelled[:3000], ""]))
            for name, python in pythons.items():
                model = str(Path(folder, f"{name}.{kind}.safetensors"))
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
                    "--quiet",
                ]
                subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
                waits = 1e3 * latencies(python, model, kind, header, lines[:SLOW])
                part = min(processor_time(python, model, kind, header, lines[: ROWS // 5]) for _ in range(2))
                whole = min(processor_time(python, model, kind, header, lines) for _ in range(2))
                median, last = np.percentile(waits, [50, 99])
                print(
                    f"| {kind} | {name} | {median:.2f} | {last:.2f} | {(ROWS - ROWS // 5) / (whole - part):,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
