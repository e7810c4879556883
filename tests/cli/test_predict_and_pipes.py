"""`predict`: ids, probabilities, scores; `run --from`; and pipes whose rows are answered as they come."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

import kernelstream
from kernelstream import cli

COMMAND = [sys.executable, "-c", "import sys; from kernelstream.cli import main; sys.exit(main())"]


def run(capsys, *argv):
    code = cli.main(list(map(str, argv)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def rows(n, seed=0, classes=("no", "yes")):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    colours = rng.choice(["red", "green"], n)
    y = [classes[int((a > 0) ^ (colour == "red"))] for (a, _), colour in zip(x, colours, strict=True)]
    return [
        {"id": f"r{i}", "a": round(a, 4), "colour": str(colour), "y": label}
        for i, ((a, _), colour, label) in enumerate(zip(x, colours, y, strict=True))
    ]


def write_csv(path, records):
    lines = [",".join(records[0]), *(",".join(map(str, record.values())) for record in records)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A file, and a model that has learnt it."""
    folder = tmp_path_factory.mktemp("trained")
    source, model = write_csv(folder / "train.csv", rows(600)), folder / "m.safetensors"
    assert cli.main(["run", str(source), "--drop", "id", "--save", str(model), "--quiet"]) == 0
    return source, model


def test_ids_probabilities_and_scores(capsys, tmp_path, trained):
    source, model = trained
    out = tmp_path / "out.csv"
    asked = ("--id", "id", "--proba", "--scores", "--output", out)
    for _ in range(2):  # the second time it replaces its own file
        assert run(capsys, "predict", model, source, *asked) == (0, "", "")
    table = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(table[0]) == ["id", "prediction", "probability of no", "probability of yes", "score of yes"]
    assert [row["id"] for row in table] == [record["id"] for record in rows(600)]
    for row in table:
        yes = float(row["probability of yes"])
        assert yes + float(row["probability of no"]) == pytest.approx(1)
        assert (yes > 0.5) == (float(row["score of yes"]) > 0) == (row["prediction"] == "yes")
    lines = tmp_path / "out.jsonl"
    run(
        capsys,
        "predict",
        model,
        source,
        "--id",
        "id",
        "--proba",
        "--output-format",
        "jsonl",
        "--output",
        lines,
    )
    first = json.loads(lines.read_text().splitlines()[0])
    assert first["id"] == "r0"
    assert first["prediction"] == table[0]["prediction"]
    assert first["probabilities"]["yes"] == float(table[0]["probability of yes"])


def test_what_a_model_cannot_give_is_refused(capsys, tmp_path, trained):
    source, _ = trained
    regression, perceptron = tmp_path / "r", tmp_path / "p"
    run(capsys, "run", "friedman", "--rows", 300, "--save", regression, "--quiet")
    run(capsys, "run", source, "--learner", "NOGD", "--save", perceptron, "--quiet")
    assert "--proba is of a classification" in run(capsys, "predict", regression, source, "--proba")[2]
    assert "--scores is of a classification" in run(capsys, "predict", regression, source, "--scores")[2]
    assert "--proba needs a model of the default" in run(capsys, "predict", perceptron, source, "--proba")[2]
    asked = ("--id", "id", "--output-format", "lines")
    assert "need --output-format csv or jsonl" in run(capsys, "predict", perceptron, source, *asked)[2]
    assert "has no column 'name'" in run(capsys, "predict", perceptron, source, "--id", "name")[2]


def test_a_run_goes_on_from_a_model(capsys, tmp_path):
    """In two files with `--from` as in one; new categories and classes are learnt, too."""
    records = rows(900) + [record | {"colour": "blue", "y": "maybe"} for record in rows(60, seed=1)]
    whole = write_csv(tmp_path / "whole.csv", records)
    first, second = (
        write_csv(tmp_path / "first.csv", records[:500]),
        write_csv(tmp_path / "second.csv", records[500:]),
    )
    once, begun, done = (tmp_path / name for name in ("once", "begun", "done"))
    assert run(capsys, "run", whole, "--drop", "id", "--save", once, "--quiet")[0] == 0
    assert run(capsys, "run", first, "--drop", "id", "--save", begun, "--quiet")[0] == 0
    code, out, _ = run(capsys, "run", second, "--from", begun, "--save", done, "--json")
    assert code == 0
    assert json.loads(out)["rounds"] == 460
    assert kernelstream.load(done).classes_.tolist() == ["maybe", "no", "yes"]
    tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for model, table in zip((once, done), tables, strict=True):
        assert run(capsys, "predict", model, whole, "--scores", "--output", table)[0] == 0
    assert tables[0].read_bytes() == tables[1].read_bytes()  # to the bit
    message = run(capsys, "run", second, "--from", begun, "--learner", "NOGD")[2]
    assert "--from goes on with a model as it is" in message
    assert "is the same file as the model" in run(capsys, "run", second, "--from", begun, "--save", begun)[2]


def formats(records):
    """The header, if there is one, and the rows as text, per format."""
    place = {"red": 2, "green": 3}
    return {
        "csv": ("id,a,colour\n", [f"{r['id']},{r['a']},{r['colour']}\n" for r in records]),
        "jsonl": ("", [json.dumps({k: v for k, v in r.items() if k != "y"}) + "\n" for r in records]),
        "libsvm": ("", [f"0 1:{r['a']} {place[r['colour']]}:1\n" for r in records]),
    }


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be waited for there")
@pytest.mark.parametrize("format", ["csv", "jsonl", "libsvm"])
def test_each_row_of_a_pipe_is_answered(tmp_path, trained, format):
    """The next row is written only when the one before was answered: an answer held back would block for ever."""
    _, model = trained
    header, lines = formats(rows(20, seed=5))[format]
    if format != "csv":
        model, train = tmp_path / "m", tmp_path / f"train.{format}"
        if format == "jsonl":
            train.write_text("".join(json.dumps(record) + "\n" for record in rows(300)))
        else:
            train.write_text("".join(formats(rows(300))["libsvm"][1]).replace("0 ", "1 ", 100))
        assert cli.main(["run", str(train), "--drop", "id", "--save", str(model), "--quiet"]) == 0
    argv = [*COMMAND, "predict", str(model), "-", "--format", format]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(header.encode())
        answers = []
        for line in lines:
            process.stdin.write(line.encode())
            answers.append(process.stdout.readline())
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0
    assert all(answers)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be waited for there")
def test_a_run_answers_each_row_of_a_pipe(tmp_path):
    lines = [json.dumps(record | {"y": int(record["y"] == "yes")}) + "\n" for record in rows(30)]
    options = [
        "--format",
        "jsonl",
        "--drop",
        "id",
        "--task",
        "classification",
        "--predictions",
        "/dev/stdout",
    ]
    argv = [*COMMAND, "run", "-", *options, "--quiet"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        for line in lines:
            process.stdin.write(line.encode())
            assert process.stdout.readline().strip() in (b"nan", b"0", b"1")
        process.stdin.close()
        assert b"NewtonMixture on -" in process.stdout.read()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be waited for there")
def test_a_slow_pipe_of_csv_is_begun_before_1000_rows(tmp_path):
    """What columns are, and the task, is told by the rows that have come when the pipe is silent."""
    argv = [
        *COMMAND,
        "run",
        "-",
        "--format",
        "csv",
        "--drop",
        "id",
        "--predictions",
        "/dev/stdout",
        "--quiet",
    ]
    header, *lines = write_csv(tmp_path / "x.csv", rows(12)).read_text().splitlines(keepends=True)
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write((header + "".join(lines[:10])).encode())
        for _ in range(10):
            assert process.stdout.readline()
        process.stdin.write(lines[10].encode())
        assert process.stdout.readline().strip() in (b"no", b"yes")
        process.stdin.close()
        process.stdout.read()


def test_latency_is_the_longest_wait():
    """A steady pipe is given in parts: no row waits until a chunk is full."""
    import os
    import threading
    import time

    from kernelstream.stream import read

    reading, writing = os.pipe()

    def write():
        with open(writing, "wb", buffering=0) as pipe:
            for i in range(40):
                pipe.write(b"1 1:%d\n" % i)
                time.sleep(0.01)

    thread = threading.Thread(target=write)
    thread.start()
    with open(reading, "rb") as pipe:
        sizes = [X.shape[0] for X, _ in read(pipe, format="libsvm", latency=0.05)]
    thread.join()
    assert sum(sizes) == 40
    assert len(sizes) > 1  # silence of 0.05 s never comes
