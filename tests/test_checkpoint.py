"""Checkpoints: a run that was killed continues exactly; errors are explained and do no damage."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from kernelstream import KernelClassifier, persistence
from kernelstream.checkpoint import Checkpoint
from kernelstream.cli import main
from kernelstream.errors import CheckpointError
from kernelstream.evaluate import Result
from kernelstream.learners import BOGD, NOGD
from kernelstream.stream import rings

posix = pytest.mark.skipif(os.name != "posix", reason="forks, kills, or limits what may be written")


def script(name):
    """A script of benchmarks/ as a module."""
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trained(rows=100, seed=0):
    X, y = next(rings(rows, seed=seed))
    return KernelClassifier(NOGD(budget=10)).partial_fit(X, y)


def command(folder, *more, rows=30_000, learner="BOGD"):
    """A run with everything that it can write."""
    return [
        "run", "moving_classes", "--rows", str(rows), "--learner", learner, "--json", "--every", "5000",
        "--checkpoint", str(folder / "state"), "--predictions", str(folder / "predictions.txt"),
        "--save", str(folder / "model.safetensors"), *more,
    ]  # fmt: skip


def states(folder):
    return sorted((folder / "state").glob("*.safetensors"))


def run(capsys, *argv):
    code = main(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *argv):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, ""), err
    assert err.startswith("kernelstream: error: ")
    assert err.count("\n") == 1
    return err


# ---- the whole thing ----


@posix
@pytest.mark.slow
@pytest.mark.parametrize("faults", [("kill", "half"), ("ENOSPC",), ("EIO",)])
def test_a_run_that_was_killed_or_met_a_disk_error_ends_as_an_undisturbed_one(tmp_path, faults):
    """The short form of benchmarks/kill_resume.py: each kind of moment once."""
    bench = script("kill_resume")
    options = {"learner": "BOGD", "every": 4096}
    source, expected, moments = bench.prepare(tmp_path, rows=9000, **options)
    wrong, tally = bench.disturb(
        tmp_path, source, expected, moments, faults=faults, each_kind_once=True, **options
    )
    assert wrong == []
    assert expected["bad_rows"] == 9
    assert {operation for _, operation in tally} == {"open", "write", "fsync", "close", "rename"}


@posix
def test_a_run_that_is_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path):
    bench = script("kill_resume")
    options = {"learner": "BOGD", "every": 4096}
    source, expected, _ = bench.prepare(tmp_path, rows=9000, **options)
    wrong, kills = bench.kill_again_and_again(tmp_path, source, expected, **options)
    assert wrong == []
    assert kills > 5


@pytest.mark.parametrize("stop_at", [4096, 8192, 20_000])
def test_any_chunk_is_a_place_to_go_on_from(tmp_path, capsys, monkeypatch, stop_at):
    """As above, but killed at a known place: after a chunk was learnt, before anything was kept of it."""
    (tmp_path / "undisturbed").mkdir()
    (tmp_path / "disturbed").mkdir()
    assert run(capsys, *command(tmp_path / "undisturbed"))[0] == 0
    step = Result.step

    def killed(self, model, X, y):
        if self.rounds >= stop_at:
            raise KeyboardInterrupt
        return step(self, model, X, y)

    monkeypatch.setattr(Result, "step", killed)
    assert main(command(tmp_path / "disturbed")) == 130
    monkeypatch.setattr(Result, "step", step)
    with open(tmp_path / "disturbed" / "predictions.txt", "ab") as file:
        file.write(b"lines that the kill left behind\n")
    capsys.readouterr()
    code, out, _ = run(capsys, *command(tmp_path / "disturbed"))
    assert code == 0
    assert json.loads(out).get("rows_learnt_before", 0) == {4096: 0, 8192: 8192, 20_000: 16384}[stop_at]
    for name in ("model.safetensors", "predictions.txt"):
        assert (tmp_path / "disturbed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


def test_predictions_and_model_are_those_of_the_estimator(tmp_path, capsys):
    run(capsys, *command(tmp_path, rows=3000))
    X, y = (np.concatenate(part) for part in zip(*_moving(3000), strict=True))
    model = KernelClassifier(BOGD(), scale="auto")
    expected = model.predict_then_learn(X, y)
    written = (tmp_path / "predictions.txt").read_text().split()
    assert written[0] == "nan"
    assert written[1:] == [str(label) for label in expected[1:].tolist()]
    loaded = persistence.load(tmp_path / "model.safetensors")
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def _moving(rows):
    from kernelstream.stream import moving_classes

    return moving_classes(rows, seed=0)


# ---- after the end ----


def test_a_finished_run_is_not_repeated(tmp_path, capsys):
    first = json.loads(run(capsys, *command(tmp_path))[1])
    (tmp_path / "model.safetensors").unlink()
    again = json.loads(run(capsys, *command(tmp_path))[1])
    assert again["mistakes"] == first["mistakes"]
    assert again["rows_learnt_before"] == 30_000
    assert (tmp_path / "model.safetensors").exists()
    text = run(capsys, *[word for word in command(tmp_path) if word != "--json"])[1]
    assert "this run had finished before" in text


def test_another_run_is_refused(tmp_path, capsys):
    run(capsys, *command(tmp_path, rows=3000))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert "rows was 3000, is 4000" in fails(capsys, *command(tmp_path, rows=4000))
    assert "learner was BOGD" in fails(capsys, *command(tmp_path, "--set", "budget=7", rows=3000))
    assert "seed was 0, is 1" in fails(capsys, *command(tmp_path, "--seed", "1", rows=3000))
    changed = command(tmp_path, rows=3000)
    changed[1] = "rings"
    assert "sources was ['moving_classes'], is ['rings']" in fails(capsys, *changed)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_another_run_is_refused_even_before_the_first_checkpoint(tmp_path, capsys, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Result, "step", killed)
    run(capsys, *command(tmp_path, rows=3000))
    assert not states(tmp_path)
    assert "rows was 3000, is 4000" in fails(capsys, *command(tmp_path, rows=4000))


def test_lost_predictions_are_noticed(tmp_path, capsys):
    run(capsys, *command(tmp_path, rows=3000))
    (tmp_path / "predictions.txt").write_text("1\n")
    assert "predictions.txt has 2 bytes, but the checkpoint" in fails(capsys, *command(tmp_path, rows=3000))


def test_a_bad_row_leaves_a_checkpoint_of_all_before_it(tmp_path, capsys):
    source = tmp_path / "rows.libsvm"
    source.write_text("".join(f"{i % 2} 1:{i % 7}\n" for i in range(9000)) + "oops\n1 1:1\n")
    argv = ["run", str(source), "--json", "--checkpoint", str(tmp_path / "state")]
    assert "line 9001" in fails(capsys, *argv)
    record = json.loads(run(capsys, *argv, "--on-bad-row", "skip")[1])
    assert record["rows_learnt_before"] > 0
    assert (record["rounds"], record["bad_rows"]) == (9001, 1)


def test_bad_rows_at_the_very_end_are_remembered(tmp_path, capsys):
    source = tmp_path / "rows.libsvm"
    source.write_text("".join(f"{i % 2} 1:{i % 7}\n" for i in range(100)) + "oops\n" * 3)
    argv = ["run", str(source), "--json", "--checkpoint", str(tmp_path / "state"), "--on-bad-row", "skip"]
    first, again = (json.loads(run(capsys, *argv)[1]) for _ in range(2))
    assert first["bad_rows"] == again["bad_rows"] == 3
    assert again["rows_learnt_before"] == 100


# ---- trouble ----


def test_a_torn_checkpoint_falls_back_to_the_one_before(tmp_path, capsys):
    run(capsys, *command(tmp_path, rows=28_000))
    expected = (tmp_path / "model.safetensors").read_bytes(), (tmp_path / "predictions.txt").read_bytes()
    newest = states(tmp_path)[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    record = json.loads(run(capsys, *command(tmp_path, rows=28_000))[1])
    assert 0 < record["rows_learnt_before"] < 28_000
    assert expected == (
        (tmp_path / "model.safetensors").read_bytes(),
        (tmp_path / "predictions.txt").read_bytes(),
    )
    for path in states(tmp_path):
        path.write_bytes(b"")
    assert "no checkpoint in" in fails(capsys, *command(tmp_path, rows=28_000))


def test_two_are_kept(tmp_path, capsys):
    run(capsys, *command(tmp_path))
    assert len(states(tmp_path)) == 2
    assert sorted(p.name for p in (tmp_path / "state").iterdir() if p.suffix != ".safetensors") == [
        "begin.json",
        "lock",
    ]


def contents(folder):
    """All files below a folder with what they hold; None for a folder."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def test_only_what_a_killed_write_left_is_removed(tmp_path):
    ours = ("000000000001.safetensors.0123abcd.tmp", "begin.json.89abcdef.tmp")
    for name in ours:
        (tmp_path / name).write_bytes(b"part")
    for name in ("notes.tmp", "x.safetensors.0123abcd.tmp", "000000000001.safetensors.bak.tmp"):
        (tmp_path / name).write_text("of the user")
    (tmp_path / "sub.tmp").mkdir()
    (tmp_path / "000000000002.safetensors.0123abcd.tmp").mkdir()
    (tmp_path / "000000000003.safetensors.0123abcd.tmp").symlink_to(tmp_path / "notes.tmp")
    before = contents(tmp_path)
    with Checkpoint(tmp_path) as checkpoint:
        assert checkpoint.load() is None
        checkpoint.save(trained())
    after = contents(tmp_path)
    assert {name: after.get(name) for name in before if name not in ours} == {
        name: value for name, value in before.items() if name not in ours
    }
    assert after.keys() - before.keys() == {"lock", "000000000001.safetensors"}
    assert not after.keys() & set(ours)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("lock", "pid 17", "lock is not of a checkpoint"),
        ("begin.json", "{}", "state is not of a run"),
        ("000000000007.safetensors", "weights", "safetensors is not of a checkpoint"),
    ],
)
def test_a_folder_in_which_our_names_are_taken_is_refused(tmp_path, capsys, name, text, message):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / name).write_text(text)
    before = contents(tmp_path)
    assert message in fails(capsys, *command(tmp_path))
    after = contents(tmp_path)
    assert {path: after[path] for path in before} == before
    assert after.keys() - before.keys() <= {"state/lock"}


@posix
def test_two_runs_cannot_have_one_folder(tmp_path, capsys):
    with Checkpoint(tmp_path / "state"):
        assert "is in use by another run" in fails(capsys, *command(tmp_path))
        code = "import sys; from kernelstream.checkpoint import Checkpoint; Checkpoint(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "state")], capture_output=True, text=True, check=False
        )
        assert "is in use by another run" in other.stderr
    assert not (tmp_path / "predictions.txt").exists()
    with Checkpoint(tmp_path / "state"):
        pass


LIMITED = """
import resource, sys
from kernelstream.cli import main
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
sys.exit(main(sys.argv[2:]))
"""


@posix
def test_a_full_disk_does_no_damage(tmp_path, capsys):
    """A limit on the size of files stands for a full disk: first the predictions meet it, then the checkpoint."""
    (tmp_path / "undisturbed").mkdir()
    (tmp_path / "disturbed").mkdir()
    run(capsys, *command(tmp_path / "undisturbed", learner="NOGD"))
    for limit, what in ((5000, "cannot write the predictions"), (100_000, "cannot write the file")):
        argv = [sys.executable, "-c", LIMITED, str(limit), *command(tmp_path / "disturbed", learner="NOGD")]
        full = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert full.returncode == 2, full.stderr
        assert what in full.stderr
        assert not list(tmp_path.rglob("*.tmp"))
    assert run(capsys, *command(tmp_path / "disturbed", learner="NOGD"))[0] == 0
    for name in ("model.safetensors", "predictions.txt"):
        assert (tmp_path / "disturbed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()


@posix
def test_a_read_only_folder_is_told(tmp_path):
    """As a user who is not root, who may write anywhere."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        code = "import sys; from kernelstream.cli import main; sys.exit(main(sys.argv[1:]))"
        argv = [sys.executable, "-c", code, "run", "--rows", "1000", "--checkpoint", f"{folder}/state"]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, **user)
        except PermissionError:
            pytest.skip("another user cannot run this Python")
        finally:
            os.chmod(folder, 0o755)
    assert done.returncode == 2
    assert "cannot write in the checkpoint folder: Permission denied" in done.stderr


def test_a_file_in_place_of_the_folder(tmp_path, capsys):
    (tmp_path / "state").write_text("")
    assert "cannot write in the checkpoint folder" in fails(capsys, *command(tmp_path))


# ---- from Python ----


def test_save_and_load(tmp_path):
    with Checkpoint(tmp_path / "a" / "b") as checkpoint:
        assert checkpoint.load() is None
        for seed in range(4):
            checkpoint.save(trained(seed=seed), position={"offset": seed}, more=[seed])
        saved = checkpoint.load()
    assert saved.position == {"offset": 3}
    assert saved.record == {"more": [3]}
    assert persistence.pack(saved.model) == persistence.pack(trained(seed=3))


def test_what_cannot_be_kept_leaves_what_is(tmp_path):
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.save(trained(), position=1)
        with pytest.raises((TypeError, ValueError)):
            checkpoint.save(trained(), position=object())
        with pytest.raises(ValueError, match=r"NaN|JSON|range"):
            checkpoint.save(trained(), position=float("nan"))
        assert checkpoint.load().position == 1


@pytest.fixture
def documented(tmp_path, monkeypatch):
    """The examples of docs/streaming.md, run in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / "docs" / "streaming.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(block, names)
    return names


def test_the_documented_loop_resumes(documented):
    assert documented["source"].rows == 20_000
    with Checkpoint("state") as checkpoint:
        assert checkpoint.load().position["rows"] == 20_000


def test_every_message_counts_once(documented, tmp_path):
    """The documented consumer, which crashes now and then, of a broker that delivers some messages again."""
    rng = np.random.default_rng(0)
    messages = [json.dumps({"x": [x], "y": float(np.sin(x))}) for x in rng.uniform(0, 6, 300).tolist()]
    polls = 0

    def poll(offset, crash_after=None):
        nonlocal polls
        polls += 1
        if polls == crash_after:
            raise ConnectionError("the broker has gone")
        first = max(0, offset - polls % 3)  # some come again
        return list(enumerate(messages))[first : offset + 7]

    consume = documented["consume"]
    undisturbed = consume(poll, tmp_path / "undisturbed", every=20)
    for crash in (1, 3, 5, 12, 2):
        polls = 0
        with pytest.raises(ConnectionError):
            consume(lambda offset, crash=crash: poll(offset, crash), tmp_path / "disturbed", every=20)
    disturbed = consume(poll, tmp_path / "disturbed", every=20)
    assert persistence.pack(disturbed) == persistence.pack(undisturbed)
    assert undisturbed.predict([[1.0]]) == pytest.approx(np.sin(1.0), abs=0.2)


def test_errors_are_value_errors():
    assert issubclass(CheckpointError, ValueError)
