"""Wrong inputs and what is said of each: one line that says what would be right."""

import gzip
import os
import subprocess
import sys

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
    "ages.csv": b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 90) for i in range(300)),
}

WRONG = [
    # the messages of the first try of a new user
    ("run binary.csv", "binary.csv is not csv: its first line is not text, but binary data"),
    ("run latin.csv", "line 1: the names of the columns are not UTF-8: say --encoding latin-1"),
    (
        "run both.csv",
        "cannot tell the delimiter, as the first line has 1 of ';' and 1 of '|': say --delimiter",
    ),
    ("run notarget.csv", "say --target NAME, or a number (-1 is the last); its columns are a, b, c"),
    ("run --metric acuracy", "unknown metric 'acuracy'; did you mean 'accuracy'"),
    (
        "run rings --metric mae",
        "--metric mae is of a regression, this is a classification: say one of accuracy,",
    ),
    ("run ids.csv", "more than 200 classes within 300 rows (labels such as user0, user1"),
    ("run ages.csv", "may be classes or quantities: say --task classification or --task regression"),
    # twenty and more of our own
    ("run picture.csv", "picture.csv is not csv: it is a picture"),
    (
        "run latin_values.csv",
        "line 2, column 'stadt': the text is not UTF-8 (another encoding: --encoding latin-1",
    ),
    ("run utf16.csv", "it is text in UTF-16: say --encoding utf-16"),
    ("run twotargets.csv", "several columns that may be the label: say --target NAME"),
    ("run empty.csv", "no rows in empty.csv"),
    ("run header.csv", "no rows in header.csv: it is empty, or has the names of columns alone"),
    ("run short.csv", "short.csv, line 3: 2 fields, but there are 3 columns"),
    ("run long.csv", "long.csv, line 3: 4 fields, but there are 3 columns"),
    ("run quote.csv", "quote.csv, line 2: a quote is not closed"),
    ("run twice.csv", "twice.csv has two columns called 'a'"),
    ("run one.csv", "no column left for the features: it has y"),
    ("run json.csv", "it looks like JSON lines: say --format jsonl"),
    ("run array.json", "line 1: expected an object in braces on each line, found '[{"),
    ("run nested.jsonl", "column 'a': a nested value; only numbers, texts, true, false and null"),
    ("run bad.jsonl", "line 1: not JSON: expected a comma or a closing bracket at column 16"),
    ("run nolabel.jsonl", "which is the label? Say --target NAME; the names are: a"),
    ("run page.csv", "it is a web page: did its download fail?"),
    ("run cut.csv.gz", "cut.csv.gz is damaged or cut short"),
    ("run zip.csv", "it is a zip archive"),
    ("run sheet.xlsx", "sheet.xlsx is a spreadsheet, which is not read here: save it as CSV"),
    ("run nolabels.csv", "line 2, column 'y': the label is missing"),
    ("run infinite.csv", "line 2, column 'b': 'inf' is not finite"),
    ("run prose.txt", "cannot tell the format of prose.txt: say one of libsvm, csv"),
    ("run good.csv --target price", "good.csv has no column 'price'; known: a, b, y"),
    ("run good.csv --target 99", "good.csv has no column 99"),
    ("run good.csv --task regression", "column 'y': label 'x' is not a number"),
    ("run good.csv --task clasification", "'clasification' is not one of 'classification', 'regression'"),
    ("run good.csv --drop a,b", "no column left for the features"),
    ("run good.csv --categorical zz", "has no column 'zz'; known: a, b, y"),
    ("run good.csv --delimiter ;;", "expected one ASCII character, or the word tab, got ';;'"),
    ("run good.csv --encoding latin-99", "unknown encoding 'latin-99': say one such as utf-8"),
    ("run good.csv --encoding latin-1 --format npy", "npy, which is not text: it has no encoding"),
    ("run good.csv --save nofolder/m", "cannot write nofolder/m: there is no folder"),
    (
        "run good.csv --on-bad-row ignore",
        "--on-bad-row must be 'stop', 'skip' or 'quarantine=FILE', got 'ignore'",
    ),
    ("run good.csv --latency -1", "expected a number of seconds that is not negative, got '-1'"),
    ("run good.csv --window 0", "--window, --max-classes and --workers must be at least 1"),
    ("run --learner KernelClassifier", "unknown learner 'KernelClassifier'; known: BOGD"),
    ("run --learner NOGD --set eta=fast", "eta must be a finite number > 0, got 'fast'"),
    ("run --rows 1.5", "expected a whole number that is not negative, got '1.5'"),
    ("run --curve x.pdf", "the name must end in .png, .svg or .csv"),
    ("run rings friedman", "a data set or stream by name is read alone"),
    ("compare rings", "Missing option '--learners'"),
    ("predict nothing.safetensors good.csv", "No such file or directory: nothing.safetensors"),
    ("predict good.csv good.csv", "not a model file"),
    (
        "inspect good.csv --column a=date",
        "expected NAME=KIND with a kind of number, boolean, category, time, text, decimal-comma, day-first,",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("wrong")
    for name, data in FILES.items():
        (path / name).write_bytes(data)
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
    assert message in captured.err
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
