"""docs/dask.md: its example runs as it stands."""

import re
from pathlib import Path

import pytest

pytest.importorskip("distributed")
PAGE = Path(__file__).parents[1] / "docs" / "dask.md"


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})
    *progress, last = capsys.readouterr().out.splitlines()
    assert progress[-1].startswith("12,000 of 12,000 rows")
    assert float(last.split()[0]) > 0.95
    assert (tmp_path / "model.safetensors").exists()
