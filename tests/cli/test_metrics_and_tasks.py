"""What `run` and `compare` report, and what they take a target for."""

import json

import numpy as np
import pytest

from kernelstream import cli
from kernelstream.metrics import METRICS, ClassificationMetrics, RegressionMetrics


def run(capsys, *argv):
    code = cli.main(list(map(str, argv)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *argv):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("kernelstream: error: ")
    return err


def table(path, labels, rows=300, delimiter=",", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    y = labels(rng, x)
    lines = [delimiter.join(("a", "b", "y"))]
    lines += [delimiter.join((f"{a:.4f}", f"{b:.4f}", str(t))) for (a, b), t in zip(x, y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def classes(rng, x):
    return np.where(x[:, 0] * x[:, 1] > 0, "yes", "no")


def quantities(rng, x):
    return np.round(x[:, 0] + 0.1 * x[:, 1], 3)


def test_the_command_line_knows_every_metric():
    from kernelstream.cli import arguments

    assert set(arguments._METRIC_NAMES) == set(METRICS)
    assert set(METRICS) == {*ClassificationMetrics.names, *RegressionMetrics.names}


def test_metrics_beside_baselines(capsys, tmp_path):
    source = table(tmp_path / "t.csv", classes)
    record = json.loads(run(capsys, "run", source, "--learner", "NOGD", "--window", 100, "--json")[1])
    assert set(record["metrics"]) == set(ClassificationMetrics.names)
    assert record["metrics_in_window"]["rows"] == 100
    assert set(record["baselines"]) == {"majority class", "last label"}
    assert record["metrics"]["log_loss"] is None
    assert sum(map(sum, record["confusion"]["counts"])) == 299  # nothing was predicted for the first
    assert record["confusion"]["labels"] == ["no", "yes"]
    out = run(capsys, "run", source, "--learner", "NOGD", "--metric", "AUC", "--metric", "f1", "--quiet")[1]
    *_, auc, f1, scaled = out.splitlines()
    assert [line.split("  ")[1] for line in (auc, f1)] == ["ROC AUC", "F1"]
    assert scaled.startswith("inputs brought to a common scale, online")
    assert "unknown metric 'acuracy'; did you mean 'accuracy'" in fails(capsys, "run", "--metric", "acuracy")
    assert "say one of mae" in fails(capsys, "run", "friedman", "--metric", "f1")


def test_a_metric_ranks(capsys):
    argv = ("compare", "--learners", "BOGD,NOGD", "--rows", 1500, "--json")
    for metric in ("roc_auc", "f1"):
        ranked = json.loads(run(capsys, *argv, "--metric", metric)[1])["ranked"]
        values = [entry["metrics"][metric] for entry in ranked]
        assert values == sorted(values, reverse=True)
    assert set(json.loads(run(capsys, *argv)[1])["baselines"]) == {"majority class", "last label"}


@pytest.mark.parametrize("kind", ["csv", "svg", "png"])
def test_curves_of_metrics(capsys, tmp_path, kind):
    if kind != "csv":
        pytest.importorskip("matplotlib")
    path = tmp_path / f"c.{kind}"
    argv = ("run", "--rows", 600, "--learner", "NOGD", "--metric", "f1", "--metric", "mcc", "--quiet")
    for _ in range(2):  # and is replaced
        assert run(capsys, *argv, "--curve", path, "--window", 100)[0] == 0
    start = {"csv": b"learner,rows,metric,all_rows,window\nNOGD,100,f1,", "svg": b"<?xml", "png": b"\x89PNG"}
    assert path.read_bytes().startswith(start[kind])


def test_metrics_go_on_after_a_checkpoint(capsys, tmp_path):
    """A run in two halves reports what a run in one does."""
    whole = table(tmp_path / "whole.csv", classes, 600)
    lines = whole.read_text().splitlines(keepends=True)
    part = tmp_path / "part.csv"
    argv = (
        "run",
        part,
        "--learner",
        "NOGD",
        "--json",
        "--checkpoint",
        tmp_path / "state",
        "--on-bad-row",
        "stop",
    )
    part.write_text("".join(lines[:301]) + "broken\n")
    fails(capsys, *argv)
    part.write_text("".join(lines))
    halves = json.loads(run(capsys, *argv)[1])
    once = json.loads(run(capsys, "run", whole, "--learner", "NOGD", "--json")[1])
    assert halves["rows_learnt_before"] == 300
    for key in ("metrics", "metrics_in_window", "baselines", "confusion"):
        assert halves[key] == once[key]


# ---- the task ----


def test_many_different_numbers_are_a_regression(capsys, tmp_path):
    source = table(tmp_path / "t.csv", quantities)
    out = run(capsys, "run", source, "--quiet")[1]
    assert "RMSE" in out
    assert "a regression, because the target has " in out
    record = json.loads(run(capsys, "compare", source, "--learners", "NOGD", "--json")[1])
    assert record["task"] == "regression"
    with open(source) as file:
        rows = [line.split(",") for line in file.read().splitlines()[1:]]
    jsonl = tmp_path / "t.jsonl"
    jsonl.write_text("".join(f'{{"a": {a}, "b": {b}, "y": {y}}}\n' for a, b, y in rows))
    assert json.loads(run(capsys, "run", jsonl, "--json")[1])["task"] == "regression"
    libsvm = tmp_path / "t.libsvm"
    libsvm.write_text("".join(f"{y} 1:{a} 2:{b}\n" for a, b, y in rows))
    assert json.loads(run(capsys, "run", libsvm, "--json")[1])["task"] == "regression"


def test_an_unclear_target_is_asked_about(capsys, tmp_path):
    source = table(tmp_path / "t.csv", lambda rng, x: rng.integers(100, size=len(x)))
    message = fails(capsys, "run", source)
    assert "may be classes or quantities: say --task classification or --task regression" in message
    assert run(capsys, "run", source, "--task", "regression", "--quiet")[0] == 0


def test_too_many_classes_stop_with_advice(capsys, tmp_path):
    source = table(tmp_path / "t.csv", lambda rng, x: [f"user{i}" for i in range(len(x))])
    for command in (("run",), ("compare", "--learners", "NOGD")):
        message = fails(capsys, *command, source, "--quiet")
        assert "more than 200 classes within 300 rows" in message
        assert "--max-classes" in message
        assert "more than 5 classes" in fails(capsys, *command, source, "--quiet", "--max-classes", 5)


# ---- delimiters and encodings ----


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(capsys, tmp_path, delimiter):
    source = table(tmp_path / "t.csv", classes, 60, delimiter)
    record = json.loads(run(capsys, "run", source, "--learner", "NOGD", "--json")[1])
    assert record["rounds"] == 60
    assert run(capsys, "run", source, "--learner", "NOGD", "--delimiter", delimiter, "--json")[0] == 0


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_every_command_finds_the_delimiter(capsys, tmp_path, delimiter):
    model = tmp_path / "m.safetensors"
    plain = table(tmp_path / "plain.csv", classes, 60)
    assert run(capsys, "run", plain, "--learner", "NOGD", "--save", model, "--quiet")[0] == 0
    text = table(tmp_path / "t.csv", classes, 60, delimiter).read_text()
    hard = tmp_path / "hard.csv"
    hard.write_bytes(b"\xef\xbb\xbf \r\n\n" + text.encode())
    for command, *options in (("inspect",), ("run", "--dry-run"), ("predict", model)):
        code, expected, _ = run(capsys, command, *options, plain)
        code_hard, out, _ = run(capsys, command, *options, hard)
        assert (code, code_hard) == (0, 0)
        assert out.replace("hard.csv", "plain.csv") == expected


def test_an_unclear_delimiter_is_asked_about(capsys, tmp_path):
    (tmp_path / "t.csv").write_text("a;b|y\n1;2|3\n")
    assert "cannot tell the delimiter" in fails(capsys, "run", tmp_path / "t.csv")
    assert "one ASCII character" in fails(capsys, "run", tmp_path / "t.csv", "--delimiter", ";;")


def test_other_encodings(capsys, tmp_path):
    text = table(tmp_path / "t.csv", lambda rng, x: np.where(x[:, 0] > 0, "größer", "kleiner")).read_text()
    for encoding in ("latin-1", "utf-16", "cp1252"):
        (tmp_path / "t.csv").write_bytes(text.encode(encoding))
        record = json.loads(
            run(capsys, "run", tmp_path / "t.csv", "--learner", "NOGD", "--encoding", encoding, "--json")[1]
        )
        assert record["confusion"]["labels"] == ["größer", "kleiner"]
    assert "unknown encoding 'latin-99'" in fails(capsys, "run", tmp_path / "t.csv", "--encoding", "latin-99")
