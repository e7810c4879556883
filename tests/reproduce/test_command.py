"""`kernelstream reproduce` as a user runs it. The experiments of the KONS paper need no data set."""

import gzip
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from kernelstream.cli import main
from kernelstream_reproduce.comparison import FAR, summarise
from kernelstream_reproduce.protocols import all_experiments
from kernelstream_reproduce.published import explanation
from kernelstream_reproduce.store import Store
from kernelstream_reproduce.streams import source_of

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "reproduction"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    assert main(["reproduce", "kons-dictionary", "--quick", "--out", str(folder), "--jobs", "1"]) == 0
    return folder


def test_it_leaves_results_that_pandas_reads(folder: Path) -> None:
    results = pd.read_json(folder / "results.jsonl", lines=True, dtype={"id": str})
    times = pd.read_json(folder / "times.jsonl", lines=True, dtype={"id": str})
    cells = all_experiments(quick=True)["kons-dictionary"].cells
    assert len(results) == sum(len(cell.seeds) for cell in cells)
    joined = results.merge(times, on="id", validate="one_to_one")
    assert len(joined) == len(results)
    assert {"seed", "settings", "version", "cpu", "learner", "data", "measures", "seconds"} <= set(joined)
    assert (joined["seconds"] >= 0).all()


def test_the_page_shows_what_is_stored(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "kernelstream reproduce kons-dictionary --quick" in page
    data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    text = json.dumps(data)
    experiments = {"kons-dictionary": all_experiments(quick=True)["kons-dictionary"]}
    summary = summarise(experiments, Store(folder))
    drawn = [chart for paper in summary.papers for s in paper.sections for chart in s.charts]
    assert drawn
    for chart in drawn:
        for series in chart.series:
            assert json.dumps(series.y) in text
    assert list((folder / "pictures").glob("*.svg"))
    assert list((folder / "pictures").glob("*.png"))


def test_a_second_time_there_is_nothing_to_do(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["reproduce", "kons-dictionary", "--quick", "--out", str(folder), "--jobs", "1"]) == 0
    assert "complete" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


LATER = {"jinja2", "markupsafe", "filelock", "joblib", "matplotlib", "kernelstream_reproduce.run"}


@pytest.mark.parametrize(
    "code",
    [
        "import kernelstream",
        "from kernelstream.cli import main; main(['--help'])",
        "from kernelstream.cli import main; main(['reproduce', '--help'])",
        "from kernelstream.cli import main; main(['data', 'list'])",
    ],
)
def test_what_only_a_run_needs_is_imported_only_then(code: str) -> None:
    script = f"{code}\nimport sys; print('LOADED', *sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert not LATER & set(printed.rpartition("LOADED")[2].split())


def test_without_jinja_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name != "jinja2" and find_spec(name))
    assert main(["reproduce", "kons", "--quick", "--out", str(tmp_path / "out")]) == 2
    assert "needs jinja2: pip install 'kernelstream[reproduce]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "skegd-tabel3"]) == 2
    assert "unknown experiment 'skegd-tabel3'; did you mean 'skegd-table3'" in capsys.readouterr().err
    assert main(["reproduce", "--jobs", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_data_that_is_not_here_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELSTREAM_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    empty, out = tmp_path / "empty", tmp_path / "out"
    empty.mkdir()
    assert main(["reproduce", "skegd-table2", "--quick", "--data", str(empty), "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert "german.numer.libsvm.xz" in told
    assert "kernelstream data get german.numer" in told
    assert not out.exists()
    names = ["skegd-table2", "kons-dictionary"]
    assert main(["reproduce", *names, "--quick", "--data", str(empty), "--out", str(out), "--jobs", "1"]) == 0
    told = capsys.readouterr()
    assert "left out" in told.err
    assert "skegd-table2       0 of" in told.out
    assert "not run" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_leaves_a_report_and_the_same_command_continues(tmp_path: Path) -> None:
    """The whole experiment takes minutes, so that it cannot be done before the signal comes."""
    command = [sys.executable, "-c", "from kernelstream.cli import main; raise SystemExit(main())"]
    command += ["reproduce", "kons-dictionary", "--jobs", "1", "--out", str(tmp_path)]
    results, kept = tmp_path / "results.jsonl", b""
    for _ in range(2):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = kept.count(b"\n")
        while not results.exists() or results.read_bytes().count(b"\n") < before + 5:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=120)
        assert process.returncode == 130, errors
        assert "the same command continues" in errors
        assert "Traceback" not in errors
        assert re.search(r"kons-dictionary +\d+ of 260 runs", told)
        assert (tmp_path / "report.html").exists()
        assert results.read_bytes().startswith(kept)  # nothing was run again
        kept = results.read_bytes()
    assert len(Store(tmp_path).results) == kept.count(b"\n") >= 10


@pytest.mark.skipif(not RESULTS.exists(), reason="the repository's results are not here")
def test_every_figure_that_is_off_is_explained(tmp_path: Path) -> None:
    """The repository's results: each cell beyond three standard errors has its reason written down."""
    for name in ("results.jsonl", "times.jsonl"):
        (tmp_path / name).write_bytes(gzip.decompress((RESULTS / f"{name}.gz").read_bytes()))
    summary = summarise(all_experiments(), Store(tmp_path))
    off = [
        (section.name, e.data, e.label, e.verdict)
        for paper in summary.papers
        for section in paper.sections
        for table in section.tables
        for e in table.entries
        if e.errors is not None and abs(e.errors) > FAR
    ]
    assert off
    assert [place for place in off if not explanation(*place)] == []


@pytest.mark.parametrize("quick", [False, True])
def test_every_data_set_of_the_plans_has_a_file_or_needs_none(quick: bool) -> None:
    streams = {"quadratic", "gaussian", "one-point"}
    data = {cell.trial.data for e in all_experiments(quick).values() for cell in e.cells}
    assert {name for name in data if source_of(name) is None} == streams
    assert os.environ["KERNELSTREAM_OFFLINE"] == "1"
