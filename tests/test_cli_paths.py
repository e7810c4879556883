"""A command never destroys what it did not write: all its paths are compared before anything is opened."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
import subprocess
import sys
import threading

import pytest

from kernelstream import KernelClassifier
from kernelstream.cli import main
from kernelstream.files import is_model_file
from kernelstream.learners import NOGD
from kernelstream.stream import rings

posix = pytest.mark.skipif(os.name != "posix", reason="needs links, pipes and devices")

CSV = "a,b,y\n" + "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(400))
#: For each command, the words before its paths, and its paths: those read, and those written.
COMMANDS = {
    "run": (
        ["--learner", "NOGD", "--json"],
        ["SOURCE"],
        ["--save", "--predictions", "--curve", "quarantine"],
    ),
    "compare": (["--learners", "NOGD,BOGD", "--json"], ["SOURCE"], ["--curve", "quarantine"]),
    "predict": ([], ["MODEL", "SOURCE"], ["--output", "quarantine"]),
}
SPELLINGS = ["same", "relative", "dotted", "symlink", "through a linked folder", "hard link"]
PAIRS = [
    (command, first, second)
    for command, (_, read, written) in COMMANDS.items()
    for first, second in itertools.chain(itertools.product(read, written), itertools.permutations(written, 2))
] + [("run", "--checkpoint", output) for output in COMMANDS["run"][2]]


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    X, y = next(rings(50))
    KernelClassifier(NOGD(budget=5)).partial_fit(X, y).save(path)
    return path.read_bytes()


def contents(folder):
    """Everything below a folder: kind, where it leads to, and what it holds."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IFMT(path.lstat().st_mode),
            os.readlink(path) if path.is_symlink() else None,
            path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


def spelt(path, how, folder):
    """Another name of a path; links are created in a folder of their own."""
    other = folder / "links"
    other.mkdir(exist_ok=True)
    if how == "relative":
        return os.path.relpath(path)
    if how == "dotted":
        return str(path.parent / "links" / ".." / path.name)
    if how == "symlink":
        (other / path.name).symlink_to(path)
        return str(other / path.name)
    if how == "through a linked folder":
        (other / "folder").symlink_to(path.parent, target_is_directory=True)
        return str(other / "folder" / path.name)
    if how == "hard link":
        os.link(path, other / path.name)
        return str(other / path.name)
    return str(path)


def words(command, paths):
    """A command with its paths."""
    options, read, _ = COMMANDS[command]
    given = [str(paths[name]) for name in read]
    for name, path in paths.items():
        if name == "quarantine":
            given += ["--on-bad-row", f"quarantine={path}"]
        elif name.startswith("--"):
            given += [name, str(path)]
    return [command, *given, *options]


def start(command, folder, model_bytes):
    """The paths that a command reads, as new files."""
    (folder / "source.csv").write_text(CSV)
    (folder / "model.csv").write_bytes(model_bytes)
    return {
        name: folder / {"SOURCE": "source.csv", "MODEL": "model.csv"}[name] for name in COMMANDS[command][1]
    }


@posix
@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("exists", [True, False], ids=["old", "new"])
@pytest.mark.parametrize(("command", "first", "second"), PAIRS)
def test_no_output_is_another_path_of_the_command(
    tmp_path, monkeypatch, capsys, model_bytes, command, first, second, exists, how
):
    monkeypatch.chdir(tmp_path)
    paths = start(command, tmp_path, model_bytes)
    if first in paths:
        if not exists:
            pytest.skip("what is read exists")
    else:
        paths[first] = tmp_path / "shared.csv"  # a name that every output may have
        if exists and first == "--checkpoint":
            paths[first].mkdir()
        elif exists:
            paths[first].write_bytes(model_bytes if first == "--save" else b"")
    if how == "hard link" and (not exists or first == "--checkpoint"):
        pytest.skip("nothing to link to")
    paths[second] = spelt(paths[first], how, tmp_path)
    before = contents(tmp_path)
    for overwrite in ([], ["--overwrite"]):
        assert main([*words(command, paths), *overwrite]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "is the same file as" in captured.err
        assert contents(tmp_path) == before


@posix
@pytest.mark.parametrize("how", ["standard input", "standard output"])
def test_standard_input_and_output_are_paths_too(tmp_path, capfd, how):
    path = tmp_path / "rows.csv"
    path.write_text(CSV)
    with open(path, "r+b") as file, contextlib.ExitStack() as stack:
        number = 0 if how == "standard input" else 1
        kept = os.dup(number)
        stack.callback(os.close, kept)
        stack.callback(os.dup2, kept, number)
        os.dup2(file.fileno(), number)
        source = "-" if how == "standard input" else "rings"
        more = ["--format", "csv"] if source == "-" else ["--rows", "100"]
        assert main(["run", source, *more, "--predictions", str(path)]) == 2
    assert f"is the same file as {how}" in capfd.readouterr().err
    assert path.read_text() == CSV


def test_the_file_of_a_data_set_is_a_path_too(tmp_path, capsys):
    path = tmp_path / "a9a.libsvm"
    path.write_text("+1 1:1\n")
    assert main(["run", "a9a", "--data", str(tmp_path), "--predictions", str(path)]) == 2
    assert "is the same file as the file of the data set a9a" in capsys.readouterr().err
    assert path.read_text() == "+1 1:1\n"


@pytest.mark.parametrize("name", ["lock", "begin.json", "000000000001.safetensors"])
def test_outputs_do_not_take_the_names_of_checkpoints(tmp_path, capsys, name):
    argv = ["run", "--rows", "500", "--checkpoint", str(tmp_path / "state"), "--quiet"]
    assert main([*argv, "--predictions", str(tmp_path / "out")]) == 0
    before = contents(tmp_path)
    assert main([*argv, "--predictions", str(tmp_path / "state" / name)]) == 2
    assert "the checkpoints have a file of that name" in capsys.readouterr().err
    assert contents(tmp_path) == before


# ---- existing files ----

FOREIGN = {
    "text": b"dear diary\n",
    "csv": CSV.encode(),
    "libsvm": b"1 1:0.5\n0 2:1\n",
    "bytes": bytes(range(256)),
    "json": b'{"__metadata__": {}}',
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize(
    ("command", "option"),
    [(command, option) for command in COMMANDS for option in COMMANDS[command][2] if option != "quarantine"],
)
def test_an_existing_file_of_another_kind_is_refused(tmp_path, capsys, model_bytes, command, option, kind):
    paths = start(command, tmp_path, model_bytes)
    paths[option] = tmp_path / "out.csv"
    paths[option].write_bytes(FOREIGN[kind])
    before = contents(tmp_path)
    argv = words(command, paths)
    assert main(argv) == 2
    assert f"{option} {paths[option]}: the file exists and is not " in capsys.readouterr().err
    assert contents(tmp_path) == before
    if command == "predict":
        return  # the model is of other columns
    assert main([*argv, "--overwrite"]) == 0
    assert contents(tmp_path) != before


@pytest.mark.parametrize("labels", [["0", "1"], ["no", "yes, surely"], ["-1.5", "2"]])
def test_the_same_command_may_be_given_twice(tmp_path, capsys, labels):
    source = tmp_path / "rows.csv"
    source.write_text("a,b,y\n" + "".join(f'{i % 7},{i % 3},"{labels[i % 2]}"\n' for i in range(400)))
    model = tmp_path / "model"
    outputs = {"--save": model, "--predictions": tmp_path / "p.txt", "--curve": tmp_path / "c.csv"}
    if labels[0] == "-1.5":
        outputs |= {"--task": "regression"}
    argv = ["run", str(source), "--json", *(str(word) for pair in outputs.items() for word in pair)]
    predict = ["predict", str(model), str(source), "--output", str(tmp_path / "out.txt")]
    for given in (argv, predict):
        kept = []
        for _ in range(2):
            assert main(given) == 0, capsys.readouterr().err
            kept.append(contents(tmp_path))
        assert kept[0] == kept[1]


def test_curves_as_pictures_may_be_written_twice(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = tmp_path / "c.png"
    for _ in range(2):
        assert main(["run", "--rows", "500", "--quiet", "--curve", str(path)]) == 0
    path.write_bytes(b"GIF89a")
    assert main(["run", "--rows", "500", "--quiet", "--curve", str(path)]) == 2
    assert path.read_bytes() == b"GIF89a"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "real" / "model")
    for _ in range(2):
        assert main(["run", "--rows", "500", "--quiet", "--save", str(tmp_path / "model")]) == 0
    assert (tmp_path / "model").is_symlink()
    assert is_model_file(str(tmp_path / "real" / "model"))


# ---- special files ----


@posix
@pytest.mark.parametrize("option", ["--save", "--predictions", "--curve"])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_pipe_is_written_to(tmp_path, option, checkpoint):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    held = io.BytesIO()
    reader = threading.Thread(target=lambda: held.write(pipe.read_bytes()), daemon=True)
    reader.start()
    argv = ["run", "--rows", "500", "--quiet", option, str(pipe)]
    assert main(argv + (["--checkpoint", str(tmp_path / "state")] if checkpoint else [])) == 0
    reader.join(10)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert len(held.getvalue()) > 500
    if option == "--predictions":
        assert held.getvalue().count(b"\n") == 500


@posix
def test_a_device_is_written_to(tmp_path):
    """A device of our own: a defect must not cost the machine its /dev/null."""
    device = tmp_path / "null.csv"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.write_bytes(b"x")
    except OSError:
        pytest.skip("no device can be created here")
    argv = ["run", "--rows", "500", "--quiet", "--save", str(device), "--predictions", str(device)]
    for _ in range(2):
        assert main([*argv, "--curve", str(device), "--checkpoint", str(tmp_path / "state")]) == 0
        assert stat.S_ISCHR(device.lstat().st_mode)


@posix
def test_standard_output_by_its_name():
    code = "import sys; from kernelstream.cli import main; sys.exit(main(sys.argv[1:]))"
    argv = [sys.executable, "-c", code, "run", "--rows", "500", "--quiet", "--predictions", "/dev/stdout"]
    done = subprocess.run(argv, capture_output=True, check=True)
    assert done.stdout.startswith(b"nan\n")
    assert done.stdout.count(b"\n") > 500
