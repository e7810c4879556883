"""Kills and disk errors at every moment at which a run changes the disk; the same command then ends as undisturbed.

    python benchmarks/kill_resume.py

`kernelstream run` on a packed LIBSVM file with some bad rows writes a model, predictions, a curve, rows put aside and
checkpoints. A first run lists its moments: every opening, write, fsync, rename, close, truncation and removal of a file.
Then, for each moment, a new run is killed (SIGKILL) just before it, or in the middle of it if it is a write; and another one
meets a full disk (ENOSPC) or an I/O error (EIO) there. After each of them the same command must end with the same model,
predictions, curve, rows put aside and counts, to the byte; after an error the exit code is 2, the message names the file, and
no checkpoint is lost. Last, one run is killed again and again, each time some moments later. `tests/test_checkpoint.py`
does it in short.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from kernelstream import persistence, runner  # noqa: F401 (all that a run needs, before the first fork)
from kernelstream.checkpoint import Checkpoint
from kernelstream.cli import curves, display, models, paths, reading  # noqa: F401
from kernelstream.cli import main as kernelstream
from kernelstream.stream import moving_classes

OUTPUTS = ("model.safetensors", "predictions.txt", "curve.csv", "bad.libsvm", "result.json")
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO}


# ---- faults ----


class Faults:
    """Lists the moments at which this process changes the disk, and lets one of them go wrong.

    Args:
        at: the number of the moment, from 0; None to list them only.
        fault: "kill" (before the moment), "half" (a write is cut in the middle, then the kill), "ENOSPC" or "EIO".
    """

    def __init__(self, at=None, fault="kill"):
        self.at, self.fault, self.moments = at, fault, []
        self._open, self._fsync, self._replace = builtins.open, os.fsync, os.replace
        self._unlink, self._truncate = os.unlink, os.truncate

    def install(self):
        """Take the place of the functions that change the disk, for the rest of this process."""
        builtins.open = self.open
        os.fsync = lambda fd: self.moment("fsync", _path_of(fd), lambda: self._fsync(fd))
        os.replace = lambda a, b: self.moment("rename", b, lambda: self._replace(a, b))
        os.unlink = lambda path, **more: self.moment("unlink", path, lambda: self._unlink(path, **more))
        os.truncate = lambda path, size: self.moment("truncate", path, lambda: self._truncate(path, size))

    def open(self, file, mode="r", buffering=-1, *more, **named):
        """As the built-in function; binary files that are written to have moments."""
        if isinstance(file, int) or "b" not in mode or not set(mode) & set("wax+"):
            return self._open(file, mode, buffering, *more, **named)
        raw = self.moment("open", file, lambda: _File(self, file, mode.replace("b", "")))
        return raw if buffering == 0 else io.BufferedWriter(raw)

    def moment(self, operation, path, act, half=None):
        """Do something to the disk, unless this is the moment of the fault."""
        path = re.sub(r"\.[0-9a-f]{8}\.tmp$", "", os.fspath(path))
        self.moments.append((operation, path))
        if self.at != len(self.moments) - 1:
            return act()
        if self.fault != "kill" and half is not None:
            half()
        if self.fault in ("kill", "half"):
            os.kill(os.getpid(), signal.SIGKILL)
        if operation == "close":
            act()
        named = (path,) if operation in ("open", "rename", "unlink") else ()  # as the system does
        raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]), *named)


class _File(io.FileIO):
    def __init__(self, faults, path, mode):
        super().__init__(path, mode)
        self._faults, self._path = faults, path

    def write(self, data):
        size = len(data)
        whole, half = super().write, bytes(data[: size // 2])
        return self._faults.moment("write", self._path, lambda: whole(data), lambda: whole(half))

    def truncate(self, size=None):
        cut = super().truncate
        return self._faults.moment("truncate", self._path, lambda: cut(size))

    def close(self):
        if not self.closed:
            close = super().close
            self._faults.moment("close", self._path, close)


def _path_of(fd):
    return os.readlink(f"/proc/self/fd/{fd}") if os.path.isdir("/proc/self/fd") else "?"


# ---- runs ----


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
    """A run with everything that it can write."""
    save, predictions, curve, bad, _ = (str(folder / name) for name in OUTPUTS)
    return [
        "run", str(source), "--json", "--learner", learner, "--save", save, "--predictions", predictions,
        "--curve", curve, "--on-bad-row", f"quarantine={bad}", "--checkpoint", str(folder / "state"),
        "--every", str(every),
    ]  # fmt: skip


def run(argv, folder, at=None, fault="kill"):
    """The exit code (None: killed), the message and the moments of a command in a process of its own."""
    folder.mkdir(exist_ok=True)
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            with (
                open(folder / "result.json", "w") as sys.stdout,
                open(folder / "stderr.txt", "w") as sys.stderr,
            ):
                faults = Faults(at, fault)
                faults.install()
                code = kernelstream(argv)
            with faults._open(folder / "moments.json", "w") as file:
                json.dump(faults.moments, file)
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    message = (folder / "stderr.txt").read_text()
    moments = json.loads((folder / "moments.json").read_text()) if code == 0 else []
    return (None if code == -signal.SIGKILL else code), message, moments


def outcome(folder):
    """Digests of all that a run leaves behind, and the counts in its result."""
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in OUTPUTS[:-1]}
    result = json.loads((folder / "result.json").read_text())
    return digests | {key: result[key] for key in ("rounds", "mistakes", "bad_rows", "model_bytes")}


def rows_kept(folder):
    """The rows that the newest checkpoint in a folder has learnt."""
    if not (folder / "state").is_dir():
        return 0
    with Checkpoint(folder / "state") as checkpoint:
        saved = checkpoint.load()
    return 0 if saved is None else saved.record["result"]["rounds"]


def cases(moments, faults, each_kind_once=False):
    """The moments and faults to try; `each_kind_once`: of the moments that do the same to the same kind of file, the last."""
    kinds = {}
    for number, (operation, path) in enumerate(moments):
        kinds[operation, re.sub(r"\d{12}", "*", os.path.basename(path))] = number
    chosen = sorted(kinds.values()) if each_kind_once else range(len(moments))
    for number in chosen:
        for fault in faults:
            if fault != "half" or moments[number][0] == "write":
                yield number, fault


def disturb(folder, source, expected, moments, *, learner, every, faults, each_kind_once=False):
    """Try every fault; the defects, and the number of faults of each sort and operation."""
    wrong, tally = [], Counter()
    for number, fault in cases(moments, faults, each_kind_once):
        operation, path = moments[number]
        place = folder / "disturbed"
        shutil.rmtree(place, ignore_errors=True)
        argv = command(source, place, learner, every)
        path = path.replace(str(folder / "undisturbed"), str(place))
        text = f"{fault} at moment {number}, {operation} {os.path.relpath(path, place)}"
        code, message, _ = run(argv, place, number, fault)
        tally["kill" if fault in ("kill", "half") else fault, operation] += 1
        if fault in ERRORS:
            if code != 2:
                wrong.append(f"{text}: exit code {code}: {message}")
            if path not in message:
                wrong.append(f"{text}: the message does not name the file: {message}")
        elif code is not None:
            wrong.append(f"{text}: it was not killed: exit code {code}: {message}")
        checkpoints = sum(
            1 for done, at in moments[:number] if done == "rename" and re.search(r"\d{12}\.saf", at)
        )
        kept = rows_kept(place)
        if kept < checkpoints * every:
            wrong.append(f"{text}: {checkpoints} checkpoints were written, but only {kept} rows are kept")
        code, message, _ = run(argv, place)
        if code != 0:
            wrong.append(f"{text}: the command does not resume: {message}")
        elif outcome(place) != expected:
            wrong.append(f"{text}: another outcome: {outcome(place)}")
    return wrong, tally


def kill_again_and_again(folder, source, expected, *, learner, every):
    """One run killed at its third moment, its continuation at the fourth, and so on to the end; kills, and what is wrong."""
    place, kills = folder / "killed", 0
    argv = command(source, place, learner, every)
    while True:
        code, message, _ = run(argv, place, kills + 3)
        if code is not None:
            break
        kills += 1
    wrong = [] if code == 0 and outcome(place) == expected else [f"after {kills} kills: {code}, {message}"]
    return wrong, kills


def prepare(folder, *, rows, learner, every):
    """Write the source and run undisturbed: the source, the outcome and the moments."""
    source, place = folder / "rows.libsvm.gz", folder / "undisturbed"
    if not source.exists():
        write_source(source, rows)
    shutil.rmtree(place, ignore_errors=True)
    code, message, moments = run(command(source, place, learner, every), place)
    assert code == 0, message
    return source, outcome(place), moments


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=14_000)
    parser.add_argument("--every", type=int, default=4096)
    parser.add_argument("--learners", default="BOGD,SkeGD")
    arguments = parser.parse_args()
    failed = False
    for learner in arguments.learners.split(","):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            options = {"learner": learner, "every": arguments.every}
            source, expected, moments = prepare(folder, rows=arguments.rows, **options)
            wrong, tally = disturb(
                folder, source, expected, moments, faults=("kill", "half", *ERRORS), **options
            )
            more, kills = kill_again_and_again(folder, source, expected, **options)
        wrong += more
        print(f"{learner}: {arguments.rows:,} rows, {len(moments)} moments, {time.monotonic() - start:.0f} s")
        for sort in ("kill", *ERRORS):
            parts = {operation: n for (name, operation), n in tally.items() if name == sort}
            print(
                f"  {sort:<7}{sum(parts.values()):>4}  " + ", ".join(f"{n} {op}" for op, n in parts.items())
            )
        print(f"  one run killed {kills} times in a row")
        print("\n".join(f"  WRONG: {text}" for text in wrong) or "  every outcome is the same to the byte")
        failed = failed or bool(wrong)
    sys.exit(failed)


if __name__ == "__main__":
    main()
