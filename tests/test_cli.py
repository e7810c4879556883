import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import kernelstream.learners
from kernelstream import cli

LEARNERS = [name for name in kernelstream.learners.__all__ if name != "Learner"]


def run(capsys, *argv):
    code = cli.main(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *argv):
    """The message of a command that must fail: one line on stderr, nothing on stdout."""
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert out == ""
    assert err.startswith("kernelstream: error: ")
    assert err.count("\n") == 1
    return err


def test_run_prints_a_table(capsys):
    code, out, err = run(capsys, "run", "--rows", "3000", "--quiet")
    assert code == 0
    assert err == ""
    title, *lines = out.splitlines()
    assert title.endswith("on rings")
    labels = [line.rsplit(maxsplit=1)[0].strip() for line in lines]
    assert labels == [
        "rounds",
        "mistakes",
        "error",
        "error, last 10 %",
        "rows/s",
        "µs per row",
        "model bytes",
    ]
    assert lines[0].split()[-1] == "3,000"


def test_run_tells_its_progress_in_plain_lines(capsys):
    _, out, _ = run(capsys, "run", "--rows", "20000")
    lines = [line for line in out.splitlines() if " rows   error" in line]
    assert len(lines) == 10
    assert lines[-1].split()[0] == "20,000"


def test_json(capsys):
    code, out, _ = run(capsys, "run", "--rows", "2e3", "--json", "--seed", "3")
    record = json.loads(out)
    assert code == 0
    assert record["rounds"] == 2000
    assert record["stream"] == "rings"
    assert record["interrupted"] is False
    assert record["error_rate"] == record["mistakes"] / 2000
    again = json.loads(run(capsys, "run", "--rows", "2000", "--json", "--seed", "3")[1])
    other = json.loads(run(capsys, "run", "--rows", "2000", "--json", "--seed", "4")[1])
    assert again["mistakes"] == record["mistakes"]
    assert other["mistakes"] != record["mistakes"]


def test_regression(capsys):
    record = json.loads(run(capsys, "run", "--stream", "friedman", "--rows", "2000", "--json")[1])
    assert record["rmse"] > 0
    assert "mistakes" not in record
    assert "RMSE" in run(capsys, "run", "--stream", "friedman", "--rows", "2000")[1]


def test_data_sets(capsys, data_file):
    record = json.loads(run(capsys, "run", "--stream", "digits", "--json")[1])
    assert record["rounds"] == 1797
    data_file("german.numer_scale")
    record = json.loads(run(capsys, "run", "--stream", "german.numer_scale", "--json")[1])
    assert record["rounds"] == 1000


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs(capsys, name):
    code, out, err = run(capsys, "run", "--learner", name.lower(), "--rows", "500", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["learner"] == name


def test_settings_reach_the_learner(capsys):
    small, large = (
        json.loads(
            run(capsys, "run", "--learner", "NOGD", "--set", f"budget={b}", "--rows", "1000", "--json")[1]
        )
        for b in (20, 200)
    )
    assert small["model_bytes"] < large["model_bytes"]


def test_settings_reach_the_learner_and_its_kernel(capsys):
    options = ["--learner", "NOGD", "--set", "budget=50", "--rows", "1000", "--json"]
    wide, narrow = (
        json.loads(run(capsys, "run", "--set", s, *options)[1])
        for s in ("kernel__gamma=0.001", "kernel__gamma=10")
    )
    assert wide["model_bytes"] == narrow["model_bytes"]
    assert wide["mistakes"] != narrow["mistakes"]


def test_learners_are_listed(capsys):
    code, out, _ = run(capsys, "learners")
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert sorted(lines) == sorted(LEARNERS)
    assert all(len(text) > 10 for text in lines.values())


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("kernelstream ")


def test_help(capsys):
    code, out, _ = run(capsys, "run", "--help")
    assert code == 0
    assert "--learner" in out


def test_mistakes_on_the_command_line_get_suggestions(capsys):
    assert "did you mean 'run'?" in fails(capsys, "rum")
    assert "did you mean '--learner'?" in fails(capsys, "run", "--lerner", "NOGD")
    assert "did you mean 'NOGD'" in fails(capsys, "run", "--learner", "NOGDD")
    assert "did you mean 'rings'?" in fails(capsys, "run", "--stream", "ringz")
    assert "did you mean 'budget'?" in fails(capsys, "run", "--learner", "NOGD", "--set", "budgte=3")
    assert "kernel__gamma" in fails(capsys, "run", "--learner", "NOGD", "--set", "kernel__gama=3")
    assert "expected KEY=VALUE" in fails(capsys, "run", "--set", "budget")
    assert "whole number" in fails(capsys, "run", "--rows", "-5")
    assert "whole number" in fails(capsys, "run", "--rows", "many")
    assert "--help" in fails(capsys)


def test_other_errors_are_one_line_too(capsys, monkeypatch):
    assert "budget" in fails(capsys, "run", "--learner", "NOGD", "--set", "budget=-1")
    assert "no rows" in fails(capsys, "run", "--rows", "0")
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    assert "KERNELSTREAM_DATA" in fails(capsys, "run", "--stream", "a9a")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=0.5", 0.5),
        ("a=None", None),
        ("a=[1, 2]", [1, 2]),
        ("a=auto", "auto"),
        ("a='1'", "1"),
        ("a=b=c", "b=c"),
        ("a=", ""),
    ],
)
def test_values_are_python_literals_or_strings(text, value):
    assert cli._setting(text) == ("a", value)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("1e6", 10**6), ("1_000", 1000), ("9007199254740993", 2**53 + 1)]
)
def test_counts(text, value):
    assert cli._count(text) == value


COMMAND = [sys.executable, "-c", "import sys; from kernelstream.cli import main; sys.exit(main())"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_interrupt_prints_the_table_so_far():
    command = [*COMMAND, "run", "--rows", "1e12"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "rows/s" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    assert "rings, interrupted" in out
    assert "mistakes" in out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_a_bar():
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "120", "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, "run", "--rows", "5000"], stdout=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux reports the end this way
                break
            if not part:
                break
            shown += part
    os.close(master)
    assert process.returncode == 0
    assert "━".encode() in shown
    assert b"rows/s" in shown
    assert "µs per row".encode() in shown


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's pipe")
def test_a_closed_pipe_is_no_error():
    command = [*COMMAND, "run", "--rows", "20000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == b""
    assert process.returncode == 0


def test_importing_the_command_line_is_cheap():
    code = "import sys, kernelstream.cli; print({'rich', 'sklearn.datasets', 'river'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_default_stream_is_one_the_default_model_learns(capsys):
    record = json.loads(run(capsys, "run", "--rows", "20000", "--json")[1])
    assert record["error_rate_last_tenth"] < 0.2
    assert np.isfinite(record["rows_per_second"])
