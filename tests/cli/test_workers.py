"""`kernelstream run --workers`: a file learnt by several processes."""

import json
import sys

import numpy as np
import pytest

import kernelstream
from kernelstream.cli import main

pytest.importorskip("distributed")


def as_csv(path, rows=4000):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(rows, 3)).round(3)
    colours = np.array(["red", "green"])[rng.integers(2, size=rows)]
    labels = np.where(X[:, 0] * X[:, 1] + (colours == "red") > 0.3, "yes", "no")
    lines = [
        ",".join([*map(str, row), colour, label])
        for row, colour, label in zip(X.tolist(), colours, labels, strict=True)
    ]
    lines.insert(1500, "1,2")
    path.write_text("a,b,c,colour,label\n" + "\n".join(lines) + "\n")
    return path


def test_a_file_by_two_processes(tmp_path, capsys):
    path, model, out = as_csv(tmp_path / "table.csv", 6000), tmp_path / "m.safetensors", tmp_path / "out.txt"
    options = ["--set", "budget=40", "--on-bad-row", "skip", "--json"]
    one = tmp_path / "one.txt"
    assert main(["run", str(path), *options, "--predictions", str(one)]) == 0
    alone = json.loads(capsys.readouterr().out)
    more = ["--workers", "2", "--save", str(model), "--predictions", str(out)]
    assert main(["run", str(path), *options, *more]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["rounds"], record["bad_rows"], record["workers"]) == (6000, 1, 2)
    assert record["merges"] >= 2
    assert abs(record["error_rate"] - alone["error_rate"]) < 0.01
    assert out.read_text().split()[:2000] == one.read_text().split()[:2000]  # the first rows are one stream
    assert len(out.read_text().split()) == 6000
    loaded = kernelstream.load(model)
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.encoder_.get_feature_names_out().tolist()[-1].startswith("colour")


def test_what_workers_refuse(tmp_path, monkeypatch, capsys):
    path = str(as_csv(tmp_path / "table.csv", 10))
    assert main(["run", path, "--workers", "2", "--learner", "Forgetron"]) == 2
    assert "models of Forgetron cannot be merged: " in capsys.readouterr().err
    assert main(["run", path, "--workers", "0"]) == 2
    assert "--workers must be at least 1" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["run", path, "--workers", "2"]) == 2
    assert 'pip install "kernelstream[dask]"' in capsys.readouterr().err
