"""The drift log and `--class-weight` on the command line."""

import json

import numpy as np
import pytest

import kernelstream
from kernelstream.cli import main


@pytest.fixture
def ran(capsys):
    """What a command printed; it must end with the given code."""

    def run(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        told = capsys.readouterr()
        return told.out + (told.err if code else "")

    return run


@pytest.fixture(scope="module")
def changing(tmp_path_factory):
    """A file of two classes that change places in the middle."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((2000, 2)).round(3)
    y = np.where((X[:, 0] > 0) ^ (np.arange(2000) >= 1000), "yes", "no")
    path = tmp_path_factory.mktemp("log") / "changing.csv"
    path.write_text("a,b,label\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(X, y, strict=True)))
    return path


def test_the_log_is_told_saved_and_inspected(changing, tmp_path, ran):
    options = (
        changing,
        "--target",
        "label",
        "--set",
        "budget=50",
        "--save",
        tmp_path / "model",
        "--overwrite",
    )
    told = json.loads(ran("run", *options, "--json"))["events"]
    event = next(event for event in told if event["why"] == "beaten")
    assert 1000 <= event["since"] < event["round"] < 1200
    text = ran("run", *options, "--quiet")
    assert f"the drift log, {len(told)} event" in text
    assert told[-1]["text"] in text
    assert [event.record() for event in kernelstream.load(tmp_path / "model").events_] == told
    assert json.loads(ran("inspect", tmp_path / "model", "--json"))["events"] == told
    assert event["text"] in ran("inspect", tmp_path / "model")


def test_class_weight(changing, tmp_path, ran):
    common = (changing, "--target", "label", "--learner", "NOGD", "--rows", "400", "--quiet", "--save")
    for number, (text, weight) in enumerate(
        [("balanced", "balanced"), ("yes=5,no=0.5", {"yes": 5.0, "no": 0.5})]
    ):
        ran("run", *common, tmp_path / f"model{number}", "--class-weight", text)
        assert kernelstream.load(tmp_path / f"model{number}").class_weight == weight
    assert "--class-weight must be" in ran(
        "run", changing, "--target", "label", "--class-weight", "yes", code=2
    )
