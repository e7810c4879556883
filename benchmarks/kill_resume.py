"""A run killed with ``kill -9`` at random moments and resumed each time ends as one that nobody disturbed.

    python benchmarks/kill_resume.py --kills 50

Runs ``kernelstream run`` on a packed LIBSVM file with some bad rows: once in peace, once killed so many times. The model file,
the predictions, the rows put aside and the counts must be the same to the byte. `tests/test_checkpoint.py` does it in short.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from kernelstream.checkpoint import Checkpoint
from kernelstream.cli import commands  # noqa: F401 (imported before the first fork)
from kernelstream.cli import main as kernelstream
from kernelstream.stream import moving_classes

OUTPUTS = ("model.safetensors", "predictions.txt", "bad.libsvm", "result.json")


def write_source(path, rows):
    """A packed file, every 997th row of which is bad; new features appear half-way."""
    with gzip.open(path, "wt", compresslevel=1) as file:
        done = 0
        for X, y in moving_classes(rows, seed=5):
            for x, label in zip(X.tolist(), y.tolist(), strict=True):
                done += 1
                more = " 9:1" if done > rows // 2 and done % 3 == 0 else ""
                cells = " ".join(f"{i}:{v:.6g}" for i, v in enumerate(x, 1))
                file.write(f"{label} {cells}{more}\n" if done % 997 else f"{label} 1:oops\n")


def command(source, folder, learner, every):
    folder.mkdir(exist_ok=True)
    save, predictions, bad, _ = (str(folder / name) for name in OUTPUTS)
    return [
        "run", str(source), "--json", "--learner", learner, "--save", save, "--predictions", predictions,
        "--on-bad-row", f"quarantine={bad}", "--checkpoint", str(folder / "state"), "--every", str(every),
    ]  # fmt: skip


def run(argv, folder, kill_after=None):
    """Run the command in a process of its own and kill it after a while; its exit code, or None if it was killed."""
    pid = os.fork()
    if pid == 0:
        with open(folder / "result.json", "w") as sys.stdout:
            code = kernelstream(argv)
        os._exit(code)
    deadline = None if kill_after is None else time.monotonic() + kill_after
    while True:
        ended, status = os.waitpid(pid, 0 if deadline is None else os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.0005)


def outcome(folder):
    """Digests of all that a run leaves behind, and the counts in its result."""
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in OUTPUTS[:-1]}
    result = json.loads((folder / "result.json").read_text())
    return digests | {key: result[key] for key in ("rounds", "mistakes", "bad_rows", "model_bytes")}


def compare(folder, *, rows, kills, learner="BOGD", every=4096, seed=0, told=print):
    """Run in peace and with kills; what both leave behind, and the rows known when each kill struck."""
    folder = Path(folder)
    source, peace, war = folder / "rows.libsvm.gz", folder / "peace", folder / "war"
    write_source(source, rows)
    start = time.monotonic()
    assert run(command(source, peace, learner, every), peace) == 0
    seconds = time.monotonic() - start
    rng = np.random.default_rng(seed)
    struck = []
    while len(struck) < kills:
        code = run(command(source, war, learner, every), war, rng.uniform(0, 2 * seconds / kills))
        if code is not None:
            assert code == 0, code
            told(f"finished after {len(struck)} kills")
            break
        with Checkpoint(war / "state") as checkpoint:
            saved = checkpoint.load()
        struck.append(0 if saved is None else saved.record["result"]["rounds"])
    assert run(command(source, war, learner, every), war) == 0
    return outcome(peace), outcome(war), struck, seconds


def main():
    parser = argparse.ArgumentParser(
        description="Kill a run again and again; it ends as if nothing had been."
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--learners", default="BOGD,NOGD,SkeGD")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for learner in arguments.learners.split(","):
        with tempfile.TemporaryDirectory() as folder:
            peace, war, struck, seconds = compare(
                folder, rows=arguments.rows, kills=arguments.kills, learner=learner, seed=arguments.seed
            )
        same = peace == war
        print(
            f"{learner}: {arguments.rows:,} rows, {seconds:.1f} s in peace; {len(struck)} kills, the last checkpoint at rows"
        )
        print("  " + " ".join(f"{row:,}" for row in struck))
        for key, value in peace.items():
            print(f"  {key:<18} {value}  {'the same' if war[key] == value else f'NOT {war[key]}'}")
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main()
