import ast
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kernelstream.learners
from kernelstream import cli
from kernelstream.cli import arguments

LEARNERS = list(kernelstream.learners.registered(plugins=False))


def run(capsys, *argv):
    code = cli.main(list(argv))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fails(capsys, *argv):
    """The message of a command that must fail: one line on stderr, nothing on stdout."""
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert out == ""
    assert err.startswith("kernelstream: error: ")
    assert err.count("\n") == 1
    return err


def test_run_prints_a_table(capsys):
    code, out, err = run(capsys, "run", "--rows", "3000", "--quiet")
    assert code == 0
    assert err == ""
    title, *lines = out.splitlines()
    assert title.endswith("on rings")
    labels = [line.rsplit(maxsplit=1)[0].strip() for line in lines]
    assert labels[:8] == [
        "rounds",
        "mistakes",
        "error",
        "error, last 10 %",
        "seconds",
        "rows/s",
        "µs per row learnt",
        "model bytes",
    ]
    assert lines[8].split() == ["all", "rows", "last", "1,000", "majority", "class", "last", "label"]
    names = [line.split("  ")[1].strip() for line in lines[9:]]
    assert names[:3] == ["accuracy", "balanced accuracy", "precision"]
    assert names[11:] == ["label / predicted", "-1", "1"]
    assert lines[0].split()[-1] == "3,000"


def test_run_tells_its_progress_in_plain_lines(capsys):
    """On standard error: standard output has the result alone."""
    _, out, err = run(capsys, "run", "--rows", "45000")
    lines = err.splitlines()
    assert [line.split()[0] for line in lines][:2] == ["8,192", "12,288"]
    assert 8 <= len(lines) <= 10
    for word in ("error", "last 1", "rows/s", "MB", "left"):
        assert word in lines[-2]
    assert lines[-1].split()[0] == "45,000"
    assert "left" not in lines[-1]
    assert " on rings\n  rounds" in out


def test_json(capsys):
    code, out, _ = run(capsys, "run", "--rows", "2e3", "--json", "--seed", "3")
    record = json.loads(out)
    assert code == 0
    assert record["rounds"] == 2000
    assert record["source"] == "rings"
    assert record["interrupted"] is False
    assert record["error_rate"] == record["mistakes"] / 2000
    again = json.loads(run(capsys, "run", "--rows", "2000", "--json", "--seed", "3")[1])
    other = json.loads(run(capsys, "run", "--rows", "2000", "--json", "--seed", "4")[1])
    assert again["mistakes"] == record["mistakes"]
    assert other["mistakes"] != record["mistakes"]


def test_regression(capsys):
    record = json.loads(run(capsys, "run", "friedman", "--rows", "2000", "--json")[1])
    assert record["rmse"] > 0
    assert "mistakes" not in record
    assert "RMSE" in run(capsys, "run", "friedman", "--rows", "2000")[1]


def test_data_sets(capsys, data_file):
    record = json.loads(run(capsys, "run", "digits", "--json")[1])
    assert record["rounds"] == 1797
    data_file("german.numer_scale")
    record = json.loads(run(capsys, "run", "german.numer_scale", "--json")[1])
    assert record["rounds"] == 1000


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs(capsys, name):
    code, out, err = run(capsys, "run", "--learner", name.lower(), "--rows", "500", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["learner"] == name


def test_settings_reach_the_learner(capsys):
    small, large = (
        json.loads(
            run(capsys, "run", "--learner", "NOGD", "--set", f"budget={b}", "--rows", "1000", "--json")[1]
        )
        for b in (20, 200)
    )
    assert small["model_bytes"] < large["model_bytes"]


def test_settings_reach_the_learner_and_its_kernel(capsys):
    options = ["--learner", "NOGD", "--set", "budget=50", "--rows", "1000", "--json"]
    wide, narrow = (
        json.loads(run(capsys, "run", "--set", s, *options)[1])
        for s in ("kernel__gamma=0.001", "kernel__gamma=10")
    )
    assert wide["model_bytes"] == narrow["model_bytes"]
    assert wide["mistakes"] != narrow["mistakes"]


def test_learners_are_listed(capsys):
    code, out, _ = run(capsys, "learners")
    assert code == 0
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert sorted(lines) == sorted(LEARNERS)
    assert all(len(text) > 10 for text in lines.values())


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0
    assert out.startswith("kernelstream ")


def test_help(capsys):
    code, out, _ = run(capsys, "run", "--help")
    assert code == 0
    assert "--learner" in out


def test_mistakes_on_the_command_line_get_suggestions(capsys):
    assert "did you mean 'run'?" in fails(capsys, "rum")
    assert "did you mean '--learner'?" in fails(capsys, "run", "--lerner", "NOGD")
    assert "did you mean 'NOGD'" in fails(capsys, "run", "--learner", "NOGDD")
    assert "did you mean 'rings'?" in fails(capsys, "run", "ringz")
    assert "did you mean 'budget'?" in fails(capsys, "run", "--learner", "NOGD", "--set", "budgte=3")
    assert "kernel__gamma" in fails(capsys, "run", "--learner", "NOGD", "--set", "kernel__gama=3")
    assert "expected KEY=VALUE" in fails(capsys, "run", "--set", "budget")
    assert "whole number" in fails(capsys, "run", "--rows", "-5")
    assert "whole number" in fails(capsys, "run", "--rows", "many")
    assert "--help" in fails(capsys)


def test_other_errors_are_one_line_too(capsys, monkeypatch, tmp_path):
    assert "budget" in fails(capsys, "run", "--learner", "NOGD", "--set", "budget=-1")
    assert "no rows" in fails(capsys, "run", "--rows", "0")
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    monkeypatch.setattr("kernelstream.stream.files.cache_folder", lambda: tmp_path)
    assert "KERNELSTREAM_DATA" in fails(capsys, "run", "a9a")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=0.5", 0.5),
        ("a=None", None),
        ("a=[1, 2]", [1, 2]),
        ("a=auto", "auto"),
        ("a='1'", "1"),
        ("a=b=c", "b=c"),
        ("a=", ""),
    ],
)
def test_values_are_python_literals_or_strings(text, value):
    assert arguments.setting(text) == ("a", value)


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("1e6", 10**6), ("1_000", 1000), ("9007199254740993", 2**53 + 1)]
)
def test_counts(text, value):
    assert arguments.count(text) == value


COMMAND = [sys.executable, "-c", "import sys; from kernelstream.cli import main; sys.exit(main())"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_interrupt_prints_the_table_so_far():
    command = [*COMMAND, "run", "--rows", "1e12"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "rows/s" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "rings, interrupted" in out
    assert "mistakes" in out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_a_bar():
    import pty

    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": "160", "TERM": "xterm"}
    argv = [*COMMAND, "run", "--rows", "50000"]
    with subprocess.Popen(argv, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux reports the end this way
                break
            if not part:
                break
            shown += part
    os.close(master)
    assert process.returncode == 0
    assert "━".encode() in shown
    assert b"rows/s" in shown
    assert "µs per row".encode() in shown


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell's pipe")
def test_a_closed_pipe_is_no_error():
    command = [*COMMAND, "run", "--rows", "20000", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        err = process.stderr.read()
    assert err == b""
    assert process.returncode == 0


HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "pandas",
    "pyarrow",
    "rich",
    "matplotlib",
    "joblib",
    "safetensors",
    "river",
)


def imported(code, modules):
    """Those of some modules that a new process has imported after some code."""
    code += f"\nimport sys\nprint([name for name in {modules!r} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ast.literal_eval(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    "code",
    [
        "import kernelstream",
        "import kernelstream; dir(kernelstream); hasattr(kernelstream, 'nothing')",
        "import kernelstream.cli",
        "from kernelstream.cli import main; main(['--help'])",
        "from kernelstream.cli import main; main(['--version'])",
        "from kernelstream.cli import main; main(['completion', 'zsh'])",
        *(
            f"from kernelstream.cli import main; main(['{command}', '--help'])"
            for command in ("run", "compare", "predict", "inspect", "learners", "completion")
        ),
    ],
)
def test_help_imports_nothing_heavy(code):
    assert imported(code, HEAVY) == []


def test_a_run_imports_nothing_that_it_does_not_need():
    code = "from kernelstream.cli import main; assert main(['run', '--rows', '100', '--quiet']) == 0"
    needless = (
        "pandas",
        "pyarrow",
        "matplotlib",
        "rich",
        "river",
        "scipy.stats._stats_py",
        "sklearn.datasets",
    )
    assert imported(code, needless) == []


def test_what_a_command_put_off_can_be_imported_later():
    """Pandas looks absent only while scikit-learn is imported; scipy.stats is loaded at its first use."""
    pytest.importorskip("pandas")
    code = (
        "from kernelstream.cli import main; main(['run', '--rows', '100', '--quiet'])\n"
        "import pandas, scipy.stats; assert pandas.DataFrame and scipy.stats.norm.cdf(0) == 0.5\n"
        "from sklearn.utils.fixes import _mode; assert _mode([1, 2, 2]).mode == 2"
    )
    assert imported(code, ("pandas", "scipy.stats")) == ["pandas", "scipy.stats"]


def test_the_package_offers_its_names():
    for name in kernelstream.__all__:
        assert name in dir(kernelstream)
        assert getattr(kernelstream, name) is not None
    assert kernelstream.stream.read is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kernelstream.nothing


def test_the_default_stream_is_one_the_default_model_learns(capsys):
    record = json.loads(run(capsys, "run", "--rows", "20000", "--json")[1])
    assert record["error_rate_last_tenth"] < 0.2
    assert np.isfinite(record["rows_per_second"])


# ---- run: what it reads and writes ----


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 2))
    text = [f"{a:.4f},{b:.4f},{'yes' if a * b > 0 else 'no'}" for a, b in x]
    path.write_text("a,b,sign\n" + "\n".join(text) + "\n")
    return path


def libsvm(path, rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    path.write_text("".join(f"{int(a * b > 0)} 1:{a:.4f} 2:{b:.4f}\n" for a, b in x))
    return path


def test_run_save_predict_inspect(capsys, tmp_path):
    source, model = libsvm(tmp_path / "rows.libsvm"), str(tmp_path / "m.safetensors")
    argv = ("run", str(source), "--learner", "NOGD", "--no-scale", "--save", model, "--json")  # scales alike
    record = json.loads(run(capsys, *argv)[1])
    assert record["rounds"] == 3000
    assert record["error_rate_last_tenth"] < 0.1
    output = str(tmp_path / "out.txt")
    assert run(capsys, "predict", model, str(source), "--output", output) == (0, "", "")
    loaded = kernelstream.load(model)
    rows = [line.split() for line in source.read_text().splitlines()]
    X = [[float(cell.partition(":")[2]) for cell in row[1:]] for row in rows]
    assert open(output).read().split() == [str(label) for label in loaded.predict(X)]
    code, out, _ = run(capsys, "inspect", model)
    assert code == 0
    for word in ("KernelClassifier", "NOGD", "budget=200", "Gaussian()", "0, 1", "checksum right"):
        assert word in out
    record = json.loads(run(capsys, "inspect", model, "--json")[1])
    assert record["learner"] == "NOGD"
    assert record["file_bytes"] == os.path.getsize(model)


def test_columns_are_at_predict_what_they_were_at_run(capsys, tmp_path):
    """Categories keep their features, whatever comes first in the new file; the target may be there or not."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    colours, x = np.array(["red", "green", "blue"])[rng.integers(3, size=4000)], rng.normal(size=4000)
    y = np.where((colours == "red") ^ (x > 0), "yes", "no")
    train, model = tmp_path / "train.csv", str(tmp_path / "m")
    train.write_text(
        "colour,x,y\n" + "".join(f"{c},{v:.3f},{t}\n" for c, v, t in zip(colours, x, y, strict=True))
    )
    record = json.loads(run(capsys, "run", str(train), "--save", model, "--json")[1])
    assert record["error_rate_last_tenth"] < 0.1
    new, output = tmp_path / "new.csv", tmp_path / "out.txt"
    for text in ("colour,x\nblue,2\nred,2\nred,-2\n", "y,x,colour\nno,2,blue\nno,2,red\nno,-2,red\n"):
        new.write_text(text)
        assert run(capsys, "predict", model, str(new), "--output", str(output))[0] == 0
        assert output.read_text().split() == ["yes", "no", "yes"]
    new.write_text("colour,z\nblue,2\n")
    assert "lacks 'x'" in fails(capsys, "predict", model, str(new), "--output", str(output))


def test_predict_takes_narrower_and_wider_rows(capfdbinary, tmp_path):
    source, model = libsvm(tmp_path / "rows.libsvm"), str(tmp_path / "m.safetensors")
    assert cli.main(["run", str(source), "--save", model, "--quiet"]) == 0
    before = open(model, "rb").read()
    (tmp_path / "narrow").write_text("0 1:0.5\n0\n")
    (tmp_path / "wide").write_text("0 1:0.5\n0 1:0.5 9:0\n")
    capfdbinary.readouterr()
    for name in ("narrow", "wide"):
        assert cli.main(["predict", model, str(tmp_path / name), "--format", "libsvm"]) == 0
        assert len(capfdbinary.readouterr().out.split()) == 2
    assert open(model, "rb").read() == before


def test_new_features_widen_the_model(capsys, tmp_path):
    source = tmp_path / "rows.libsvm"
    source.write_text("".join(f"{i % 2} 1:{i % 2}\n" for i in range(5000)) + "1 7:1\n0 1:1\n" * 10)
    model = str(tmp_path / "m")
    record = json.loads(run(capsys, "run", str(source), "--save", model, "--json")[1])
    assert record["rounds"] == 5020
    assert kernelstream.load(model).n_features_in_ == 7


def test_standard_input(tmp_path):
    text = libsvm(tmp_path / "rows.libsvm").read_bytes()
    argv = [*COMMAND, "run", "-", "--format", "libsvm", "--json"]
    done = subprocess.run(argv, input=text, capture_output=True, check=True)
    assert json.loads(done.stdout)["rounds"] == 3000


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_interrupt_while_waiting_for_rows(tmp_path):
    """The pipe is open and silent: Ctrl-C must not wait for it."""
    model = tmp_path / "m"
    written = tmp_path / "p.txt"
    files = ["--save", str(model), "--checkpoint", str(tmp_path / "state"), "--predictions", str(written)]
    argv = [*COMMAND, "run", "-", "--format", "libsvm", *files]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(libsvm(tmp_path / "rows", 20_000).read_bytes())
        process.stdin.flush()
        while not written.exists() or written.stat().st_size < 2 * 16_000:
            assert process.poll() is None
            time.sleep(0.05)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        out = process.stdout.read().decode()
    assert "interrupted" in out
    assert model.exists()
    assert list((tmp_path / "state").glob("*.safetensors"))


def test_a_bad_row_is_told_in_one_line(capsys, tmp_path):
    source = libsvm(tmp_path / "rows.libsvm", 10)
    with open(source, "a") as file:
        file.write("1 1:x\n")
    message = fails(capsys, "run", str(source), "--quiet")
    assert "rows.libsvm, line 11, column" in message
    record = json.loads(run(capsys, "run", str(source), "--on-bad-row", "skip", "--json")[1])
    assert (record["rounds"], record["bad_rows"]) == (10, 1)
    assert "line 11" in record["first_bad_row"]
    out = run(capsys, "run", str(source), "--on-bad-row", f"quarantine={tmp_path / 'bad'}")[1]
    assert "bad rows left out" in out
    assert (tmp_path / "bad").read_text() == "1 1:x\n"


def test_curves(capsys, tmp_path):
    run(capsys, "run", "--learner", "NOGD", "--rows", "3000", "--curve", str(tmp_path / "c.csv"), "--quiet")
    lines = (tmp_path / "c.csv").read_text().splitlines()
    assert lines[0] == "learner,rows,error"
    assert lines[-1].startswith("NOGD,3000,0.")
    pytest.importorskip("matplotlib")
    run(capsys, "run", "--rows", "3000", "--curve", str(tmp_path / "c.png"), "--quiet")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_written_is_told_before_the_run(capsys, tmp_path, monkeypatch):
    far = ("--rows", "1e12")
    assert "must end in .png, .svg or .csv" in fails(capsys, "run", *far, "--curve", "x.jpg")
    assert "there is no folder" in fails(capsys, "run", *far, "--save", str(tmp_path / "no" / "m"))
    assert "it is a folder" in fails(capsys, "run", *far, "--predictions", str(tmp_path))
    assert "give --checkpoint" in fails(capsys, "run", *far, "--every", "10")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "kernelstream[plot]" in fails(capsys, "run", *far, "--curve", "x.png")


def test_a_missing_source_leaves_old_predictions_alone(capsys, tmp_path):
    old = tmp_path / "p.txt"
    old.write_text("precious\n")
    fails(capsys, "run", str(tmp_path / "nothing.csv"), "--predictions", str(old))
    assert old.read_text() == "precious\n"


def test_a_damaged_model_is_told(capsys, tmp_path):
    (tmp_path / "m").write_bytes(b"no model")
    for command in (("inspect",), ("predict",)):
        extra = ("rings",) if command == ("predict",) else ()
        assert "not a model file" in fails(capsys, *command, str(tmp_path / "m"), *extra)


# ---- compare ----


def test_compare_ranks(capsys, tmp_path):
    argv = ("compare", "--learners", "NOGD,bogd,KernelPerceptron", "--rows", "3000")
    record = json.loads(run(capsys, *argv, "--json", "--curve", str(tmp_path / "c.csv"))[1])
    errors = [entry["error_rate"] for entry in record["ranked"]]
    assert errors == sorted(errors)
    assert {entry["learner"] for entry in record["ranked"]} == {"NOGD", "BOGD", "KernelPerceptron"}
    alone = json.loads(run(capsys, "run", "--learner", "BOGD", "--rows", "3000", "--json")[1])
    assert alone["mistakes"] == next(e["mistakes"] for e in record["ranked"] if e["learner"] == "BOGD")
    names = {line.partition(",")[0] for line in (tmp_path / "c.csv").read_text().splitlines()[1:]}
    assert names == {"NOGD", "BOGD", "KernelPerceptron"}
    out = run(capsys, *argv, "--quiet")[1].splitlines()
    assert out[0] == "3,000 rows of rings"
    assert [line.split()[0] for line in out[2:]] == ["1", "2", "3", "majority", "last", "inputs"]


def test_compare_settings(capsys):
    argv = ("compare", "--learners", "NOGD,BOGD", "--rows", "1000", "--json")
    sizes = {}
    for settings in ((), ("--set", "budget=20"), ("--set", "BOGD.budget=20")):
        record = json.loads(run(capsys, *argv, *settings)[1])
        sizes[settings] = {e["learner"]: e["model_bytes"] for e in record["ranked"]}
    default, both, one = sizes.values()
    assert both["NOGD"] < default["NOGD"]
    assert one["NOGD"] == default["NOGD"]
    assert one["BOGD"] == both["BOGD"] < default["BOGD"]
    assert "did you mean 'budget'?" in fails(capsys, *argv, "--set", "budgte=3")
    assert "unknown learner 'X'" in fails(capsys, *argv, "--set", "X.budget=3")
    assert "unknown learner" in fails(capsys, "compare", "--learners", "NOGD,nope")


def test_compare_goes_on_without_those_that_fail(capsys):
    argv = ("compare", "--learners", "NOGD,KernelPA", "--set", "max_size=10", "--rows", "3000")
    record = json.loads(run(capsys, *argv, "--json")[1])
    assert [entry["learner"] for entry in record["ranked"]] == ["NOGD"]
    assert "max_size=10" in record["failed"]["KernelPA"]
    assert "KernelPA stopped: KernelPA holds max_size=10" in run(capsys, *argv, "--quiet")[1]
    assert "no learner reached the end" in fails(capsys, *argv[:2], "KernelPA", *argv[3:], "--quiet")


# ---- help ----


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_are_explained(capsys, name):
    code, out, _ = run(capsys, "learners", name.lower())
    assert code == 0
    assert "References:" in out
    for key in getattr(kernelstream.learners, name)._get_param_names():
        assert f"  {key} = " in out
    assert ">>>" not in out


def test_help_has_examples_and_exit_codes(capsys):
    for command in ((), ("run",), ("compare",), ("predict",), ("inspect",), ("learners",)):
        out = run(capsys, *command, "--help")[1]
        assert "examples:" in out
        assert "130  stopped by Ctrl-C" in out


def test_commands_of_other_packages_are_found(capsys, tmp_path, monkeypatch):
    """As `importlib.metadata` finds them."""
    from importlib.metadata import entry_points

    from kernelstream.cli import group

    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[console_scripts]\nother = other:main\n\n[kernelstream.commands]\nhello = other_commands:hello\n\n[more]\na = b:c\n"
    )
    (tmp_path / "other_commands.py").write_text(
        "import click\n\n@click.command(short_help='say hello')\ndef hello():\n    print('hello')\n    return 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert group._plugins() == {entry.name: entry.value for entry in entry_points(group=group.PLUGINS)}
    assert run(capsys, "hello") == (3, "hello\n", "")
    assert "say hello" in run(capsys, "--help")[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed(capsys, shell):
    code, out, _ = run(capsys, "completion", shell)
    assert code == 0
    assert "kernelstream" in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion_completes_in_bash(capsys, tmp_path):
    script = tmp_path / "complete.bash"
    script.write_text(run(capsys, "completion", "bash")[1])
    program = tmp_path / "kernelstream"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ask = """
        source "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "$(complete -p kernelstream | sed 's/.*-F \\([^ ]*\\).*/\\1/')" kernelstream
        echo "${COMPREPLY[@]}"
    """
    for words, expected in (
        (["kernelstream", "com"], "compare completion"),
        (["kernelstream", "run", "--learner", "NO"], "NOGD NOLANA"),
        (["kernelstream", "run", "--che"], "--checkpoint"),
        (["kernelstream", "learners", "SkeG"], "SkeGD"),
        (["kernelstream", "compare", "--learners", "NOGD,BO"], "NOGD,BOGD"),
        (["kernelstream", "run", "--format", "js"], "jsonl"),
        (["kernelstream", "run", "--task", "r"], "regression"),
        (["kernelstream", "data", "g"], "get"),
        (["kernelstream", "data", "get", "svm"], "svmguide3"),
    ):
        argv = ["bash", "-c", ask, "ask", str(script), *words]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == expected, done.stderr
