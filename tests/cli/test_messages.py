"""Wrong inputs and what is said of each: docs/messages.md, every command of which is run."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelstream import cli

FILES = {
    "binary.csv": bytes(range(256)) * 40,
    "picture.csv": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(500),
    "latin.csv": "größe,preis,y\n1,2,a\n3,4,b\n".encode("latin-1"),
    "latin_values.csv": "a,stadt,y\n1,Köln,a\n3,Bonn,b\n".encode("latin-1"),
    "utf16.csv": "a,b,y\n1,2,x\n3,4,z\n".encode("utf-16"),
    "both.csv": b"a;b|y\n1;2|x\n",
    "notarget.csv": b"a,b,c\n1,2,x\n3,4,z\n",
    "twotargets.csv": b"y,label,c\n1,2,x\n3,4,z\n",
    "good.csv": b"a,b,y\n1,2,x\n3,4,z\n",
    "empty.csv": b"",
    "header.csv": b"a,b,y\n",
    "short.csv": b"a,b,y\n1,2,x\n3,4\n",
    "long.csv": b"a,b,y\n1,2,x\n3,4,z,5\n",
    "quote.csv": b'a,b,y\n1,"2,x\n3,4,z\n',
    "twice.csv": b"a,a,y\n1,2,x\n",
    "one.csv": b"y\n1\n2\n",
    "json.csv": b'{"a": 1, "y": 0}\n{"a": 2, "y": 1}\n',
    "array.json": b'[{"a": 1, "y": 0},\n {"a": 2, "y": 1}]\n',
    "nested.jsonl": b'{"a": {"b": 1}, "y": 0}\n',
    "bad.jsonl": b'{"a": 1, "y": 0\n',
    "nolabel.jsonl": b'{"a": 1}\n',
    "page.csv": b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n",
    "cut.csv.gz": gzip.compress(b"a,b,y\n1,2,x\n" * 5000)[:60],
    "zip.csv": b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(100),
    "sheet.xlsx": b"PK\x03\x04\x14\x00\x06\x00" + bytes(100),
    "nolabels.csv": b"a,b,y\n1,2,\n3,4,\n",
    "infinite.csv": b"a,b,y\n1,inf,x\n3,4,z\n",
    "prose.txt": b"hello world\nthis is text\n",
    "ids.csv": b"a,y\n" + b"".join(b"%d,user%d\n" % (i, i) for i in range(300)),
    "slashes.csv": b"when,x,y\n03/04/2024,1,a\n05/06/2024,2,b\n",
    "thousands.csv": b"a;x;y\n1,500;1;a\n2,250;2;b\n",
    "semicolons.csv": b"a;b;y\n1;2;x\n3;4;z\n",
    "words.jsonl": b'{"age": "old", "y": 0}\n{"age": 31, "y": 1}\n',
    "ages.csv": b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 90) for i in range(300)),
}

PAGE = Path(__file__).parents[2] / "docs" / "messages.md"
WRONG = re.findall(r"^\$ kernelstream (.*)\n(.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong")
    for name, data in FILES.items():
        (path / name).write_bytes(data)
    (path / "folder").mkdir()
    return path


@pytest.mark.parametrize(("command", "message"), WRONG, ids=[command for command, _ in WRONG])
def test_wrong_inputs_are_told_in_one_line(capsys, monkeypatch, folder, command, message):
    monkeypatch.chdir(folder)
    before = sorted(os.listdir())
    argv = command.split()
    assert cli.main([*argv, *(["--quiet"] if argv[0] in ("run", "compare") else [])]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("kernelstream: error: ")
    assert captured.err.count("\n") == 1
    said = captured.err.rstrip("\n")
    assert said.startswith(message[:-4]) if message.endswith(" ...") else said == message
    assert sorted(os.listdir()) == before


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
@pytest.mark.parametrize("module", ["click", "sklearn.base", "kernelstream.estimators"])
def test_an_interrupt_during_the_start_ends_without_a_traceback(module):
    code = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting)\n"
        "from kernelstream.cli import main\n"
        "sys.exit(main(['run', '--rows', '100']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_first_progress_line_has_a_speed(capsys):
    cli.main(["compare", "--learners", "NOGD", "--rows", "20000"])
    first = capsys.readouterr().err.splitlines()[0]
    assert "rows/s" in first
    assert " 0 rows/s" not in first


def test_inspect_shows_no_internal_arrays_unless_asked(capsys, tmp_path):
    model = str(tmp_path / "m")
    cli.main(["run", "--rows", "300", "--quiet", "--save", model])
    capsys.readouterr()
    cli.main(["inspect", model])
    assert "arrays" not in capsys.readouterr().out
    cli.main(["inspect", model, "--arrays"])
    assert "arrays" in capsys.readouterr().out


def test_inspect_shows_columns_by_kind_as_they_are_spelled(capsys, tmp_path):
    source, model = tmp_path / "x.csv", str(tmp_path / "m")
    rows = "".join(f"{i},{'rot' if i % 3 else 'grün'},{i % 2}\n" for i in range(60))
    source.write_text("größe,farbe,y\n" + rows, encoding="utf-8")
    assert cli.main(["run", str(source), "--quiet", "--save", model]) == 0
    capsys.readouterr()
    cli.main(["inspect", model])
    out = capsys.readouterr().out
    for line in ("größe   number", "farbe   category", "y       label"):
        assert line in out
