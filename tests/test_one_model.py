"""One model, everywhere: trained by the command line on a file, continued in Python from frames, served to JSON lines."""

from __future__ import annotations

import json

import numpy as np
import pytest

import kernelstream
from kernelstream import KernelClassifier
from kernelstream.cli import main
from kernelstream.stream import read

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

COLOURS = ["red", "green", "blue", "a, quoted", "π"]
WORDS = "the cheap good bad film phone broke never again loved it".split()


def table(n, seed):
    """Rows as Python's own values: a number with gaps, a category with gaps, a time, a text, a boolean; and the label."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        age = round(float(rng.normal(40, 12)), 3)
        good = bool(rng.random() < 0.5)
        words = [str(w) for w in rng.choice(WORDS, size=6)] + [f"no{i}"]
        label = "yes" if age + 20 * good + 10 * ("good" in words) > 52 else "no"
        rows.append(
            {
                "age": None if rng.random() < 0.1 else age,
                "colour": None if rng.random() < 0.1 else str(rng.choice(COLOURS[: 3 + 2 * (seed > 0)])),
                "when": f"2024-0{1 + i % 9}-{1 + i % 28:02d} {i % 24:02d}:30:15",
                "review": " ".join(words),
                "member": good,
                "label": label,
            }
        )
    return rows


def write(path, rows, form):
    """A file of the rows, without the label if they have none."""
    names = list(rows[0])
    if form == "csv":
        quoted = [
            '"' + str(v).replace('"', '""') + '"' if isinstance(v, str) else v
            for r in rows
            for v in r.values()
        ]
        cells = ["" if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in quoted]
        lines = [",".join(cells[i : i + len(names)]) for i in range(0, len(cells), len(names))]
        path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    elif form == "jsonl":
        path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    else:
        import pyarrow.parquet as pq

        columns = {name: [r[name] for r in rows] for name in names}
        held = pa.table(columns)
        when = pa.array(
            [np.datetime64(w.replace(" ", "T"), "us") for w in columns["when"]], pa.timestamp("us")
        )
        held = held.set_column(names.index("when"), "when", when)
        pq.write_table(held, path)
    return path


def frame(rows):
    held = pd.DataFrame({name: [r[name] for r in rows] for name in rows[0]})
    held["when"] = pd.to_datetime(held["when"])
    return held


def without_labels(rows):
    return [{k: v for k, v in r.items() if k != "label"} for r in rows]


def run(*arguments):
    assert main([str(a) for a in arguments]) == 0


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_one_model_from_a_file_to_a_frame_to_json_lines(form, tmp_path, capsys):
    first, second, third = table(300, 0), table(120, 1), table(80, 2)
    model, went_on = tmp_path / "m.safetensors", tmp_path / "m2.safetensors"
    options = ["--target", "label", "--set", "budget=20", "--quiet"]
    run("run", write(tmp_path / f"train.{form}", first, form), *options, "--save", model)

    loaded = kernelstream.load(model)
    assert loaded.encoder_.columns_ == {
        "age": "number", "colour": "category", "when": "time", "review": "text", "member": "boolean",
    }  # fmt: skip
    table_of_third = frame(without_labels(third))
    shuffled = table_of_third[["review", "member", "age", "when", "colour"]]
    expected = loaded.predict(table_of_third).tolist()
    assert len(set(expected)) == 2
    assert loaded.predict(shuffled).tolist() == expected
    scores = loaded.decision_function(table_of_third)
    for other in (
        pa.Table.from_pandas(shuffled), without_labels(third),
        {name: shuffled[name].tolist() for name in shuffled},
        pytest.importorskip("polars").from_pandas(shuffled),
    ):  # fmt: skip
        assert (loaded.decision_function(other) == scores).all()
    capsys.readouterr()
    for served in ("csv", "parquet", "jsonl"):
        run("predict", model, write(tmp_path / f"new.{served}", without_labels(third), served))
        assert capsys.readouterr().out.split() == expected

    loaded.partial_fit(frame(without_labels(second)), [r["label"] for r in second])
    loaded.save(went_on)
    again = kernelstream.load(went_on)
    scores = loaded.decision_function(table_of_third)
    assert (again.decision_function(table_of_third) == scores).all()
    run("predict", went_on, tmp_path / "new.jsonl")
    assert capsys.readouterr().out.split() == loaded.predict(table_of_third).tolist()

    # the same rows through Python alone: equal to the bit
    alone = KernelClassifier(again.learner, columns="auto", scale=again.scale)
    rows = without_labels(first)
    given = rows if form == "jsonl" else frame(rows)
    alone.partial_fit(given, [r["label"] for r in first])
    alone.partial_fit(frame(without_labels(second)), [r["label"] for r in second])
    assert (alone.decision_function(table_of_third) == scores).all()


def test_a_model_of_python_is_served_by_the_command_line(tmp_path, capsys):
    first, second = table(200, 0), table(50, 1)
    model = KernelClassifier("NOGD", columns={"review": "drop"}, scale="auto")
    model.set_params(learner__budget=30).fit(frame(without_labels(first)), [r["label"] for r in first])
    model.save(tmp_path / "m")
    rows = [{k: v for k, v in r.items() if k != "review"} for r in without_labels(second)]
    expected = model.predict(frame(rows)).tolist()
    capsys.readouterr()
    for form in ("csv", "parquet", "jsonl"):
        run("predict", tmp_path / "m", write(tmp_path / f"new.{form}", without_labels(second), form))
        assert capsys.readouterr().out.split() == expected


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("hashed", [None, 16])
def test_chunks_do_not_matter(form, hashed, tmp_path):
    path = write(tmp_path / f"t.{form}", table(150, 1), form)
    found = []
    for size in (1, 7, 1000):
        source = read(path, target="label", chunk_size=size, hashed=hashed, text_features=64)
        rows = [X if isinstance(X, np.ndarray) else X.toarray() for X, _ in source]
        width = rows[-1].shape[1]
        found.append(
            (np.vstack([np.pad(r, [(0, 0), (0, width - r.shape[1])]) for r in rows]), source.encoding)
        )
    for X, encoding in found[1:]:
        assert (X == found[0][0]).all()
        assert encoding == found[0][1]


def test_old_model_files_know_their_columns(tmp_path):
    """What `run --save` wrote before models had columns of their own."""
    from kernelstream import persistence

    rows = table(60, 0)
    text = "age,colour,label\n" + "".join(
        f"{r['age'] or ''},{r['colour'] or ''},{r['label']}\n" for r in rows
    )
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    source = read(path, columns={"colour": "category"})
    model = KernelClassifier("NOGD")
    for X, y in source:
        model.partial_fit(X, y)
    new = source.encoding
    state = {
        "names": new["names"], "numbers": ["age"], "categories": ["colour"], "target": "label", "label": "text",
        "extra": new["features"][1:], "order": new["names"],
    }  # fmt: skip
    persistence.save(model, tmp_path / "m", {"encoding": {"format": "csv", "state": state}, "options": {}})
    loaded = kernelstream.load(tmp_path / "m")
    given = pd.DataFrame({"colour": ["red", None], "age": [3.0, None]})
    assert loaded.predict(given).tolist() == model.predict(source_rows(given, new)).tolist()


def source_rows(given, encoding):
    from kernelstream import TableEncoder

    return TableEncoder.from_description(encoding).transform(given)


def test_kinds_are_shown_and_set(tmp_path, capsys):
    path = write(tmp_path / "t.csv", table(50, 0), "csv")
    run("inspect", path)
    shown = capsys.readouterr().out
    for line in (
        "age     number    1, 1 for missing ones",
        "when    time      7",
        "review  text      4,096",
        "member  boolean   1",
    ):
        assert line in shown
    run(
        "inspect", path, "--target", "label", "--column", "colour=drop", "--column", "when=category", "--json"
    )
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert columns == {
        "age": "number", "when": "category", "review": "text", "member": "boolean", "colour": "drop", "label": "label",
    }  # fmt: skip
    run("run", path, "--target", "label", "--dry-run", "--save", tmp_path / "m")
    assert "t.csv: classification, because the target is text" in capsys.readouterr().out
    assert not (tmp_path / "m").exists()
    run("run", path, "--target", "label", "--column", "review=drop", "--quiet", "--save", tmp_path / "m")
    capsys.readouterr()
    run("inspect", tmp_path / "m")
    shown = capsys.readouterr().out
    assert "review  drop" in shown
    assert "label   label" in shown
    assert main(["inspect", str(path), "--column", "age=date"]) == 2
    assert "expected NAME=KIND with a kind of number, boolean" in capsys.readouterr().err
    assert main(["run", str(path), "--target", "label", "--column", "agee=number"]) == 2
    assert "has no column 'agee'; did you mean 'age'?" in capsys.readouterr().err
