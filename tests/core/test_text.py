"""The compiled parser of text against damaged input, and against the obvious one. The sanitizers run it too.

A long run by hand, in a build with the sanitizers:
``KERNELSTREAM_FUZZ=200000 python -m pytest -n 0 tests/core/test_text.py``
"""

import array
import functools
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kernelstream import _text
from oracles.libsvm import parse_lines

MUTATIONS = int(os.environ.get("KERNELSTREAM_FUZZ", "4000"))
LARGEST = float(np.finfo(np.float64).max)
# Text of more than 512 bytes has memory of its own: the sanitizer sees a step beyond its end.
PADDING = b"# " + b"-" * 600 + b"\n"

SEEDS = [
    b"+1 1:0.5 3:-2e-3\n-1\n\n  2.5 2:1 4:7  # a comment\n-1 1:0\r\n",
    b"1 1:1 2:2 3:3 2147483647:4\n-1 5:1e308 6:4.9e-324 7:1e-400\n",
    b"3 1:123456789012345 2:1234567890123456 3:0.1234567890123456789 4:1e22\n",
    b"1 1:nan 2:inf\nnan 1:1\n1 2:1 2:1\n1 0:1\n1 99999999999999999999:1\n",
    b"-0 1:-0 2:+0.0 3:.5 4:5. 5:1E5 1e1:7\n",
    b'a,"b ""c"" d",e\n"f\ng",h,i\n5" disc,x,y\n"never closed,\n1,2\n',
]
PIECES = [
    b":",
    b" ",
    b"\n",
    b"#",
    b"-",
    b"+",
    b".",
    b"e",
    b"E9",
    b"0",
    b"9" * 20,
    b"\r",
    b"\0",
    b"\xff",
    b'"',
    b",",
    b"nan",
    b"_",
    b"0x1p3",
]


def mutated(random):
    text = bytearray(random.choice(SEEDS))
    for _ in range(random.randint(1, 6)):
        at = random.randrange(len(text) + 1)
        what = random.randrange(6)
        if what == 0:
            text[at:at] = random.choice(PIECES)
        elif what == 1:
            del text[at : at + random.randint(1, 8)]
        elif what == 2 and text:
            text[at % len(text)] = random.randrange(256)
        elif what == 3:
            other = random.choice(SEEDS)
            start = random.randrange(len(other))
            text[at:at] = other[start : start + random.randint(1, 20)]
        elif what == 4:
            del text[at:]
        else:
            text[at:at] = text[at : at + random.randint(1, 30)] * random.randint(1, 3)
    return bytes(text)


def held(text):
    """The text in memory that ends with it; a bytes object has a zero behind."""
    return array.array("B", PADDING + text)


def lines_of(text):
    lines = text.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


@pytest.mark.parametrize("part", range(4))
def test_damaged_text_gives_what_the_obvious_parser_gives(part):
    generator = random.Random(part)
    for _ in range(MUTATIONS // 4):
        text = mutated(generator)
        n_features = generator.choice([0, 0, 3, 10])
        labels, starts, indices, values, refused = _text.parse_libsvm(
            held(text), n_features, LARGEST, True, False
        )
        expected, bad = parse_lines(lines_of(PADDING + text), n_features or None)
        assert labels.tolist() == [label for label, _ in expected], text
        assert np.diff(starts).tolist() == [len(row) for _, row in expected], text
        assert (indices + 1).tolist() == [index for _, row in expected for index, _ in row], text
        assert values.tolist() == [value for _, row in expected for _, value in row], text
        assert (refused.reshape(-1, 6)[:, 0] + 1).tolist() == [number for number, _ in bad], text
        spans = refused.reshape(-1, 6)[:, 2:4]
        assert ((spans >= 0) & (spans <= len(PADDING + text))).all()
        _text.parse_libsvm(held(text), n_features, 3.4e38, False, True)


def ends_by_hand(text, delimiter):
    """Where records end, one character at a time."""
    ends, inside, field_start = [], False, True
    i = 0
    while i < len(text):
        c = text[i : i + 1]
        if inside:
            if c == b'"' and text[i + 1 : i + 2] == b'"':
                i += 1
            elif c == b'"':
                inside = False
        elif c == b"\n" or (delimiter and c == b"\r"):
            i += delimiter != b"" and text[i : i + 2] == b"\r\n"
            ends.append(i + 1)
            field_start = True
        else:
            inside = bool(delimiter) and c == b'"' and field_start
            field_start = c == delimiter
        i += 1
    return ends


@pytest.mark.parametrize("delimiter", [b"", b",", b"\t"])
def test_records_of_damaged_text_end_where_they_should(delimiter):
    generator = random.Random(9)
    for _ in range(MUTATIONS // 4):
        text = mutated(generator)
        expected = ends_by_hand(PADDING + text, delimiter)
        most = generator.choice([1, 2, 1000])
        name = delimiter.decode()
        assert _text.record_ends(held(text), 0, most, name, True).tolist() == expected[:most]
        assert _text.record_ends(held(text), len(PADDING), 1000, name, True).tolist() == expected[1:]
        open_end = delimiter and text.endswith(b"\r") and expected[-1] == len(PADDING + text)
        assert (
            _text.record_ends(held(text), 0, 1000, name, False).tolist()
            == expected[: -1 if open_end else None]
        )
    for start in (-1, len(PADDING) + len(text) + 1):
        with pytest.raises(ValueError, match="outside the text"):
            _text.record_ends(held(text), start, 1, "", True)


def test_arguments_that_would_read_outside_the_text_are_refused():
    roles, places = np.array([1], np.uint8), np.array([0], np.int32)
    for ends in ([5], [2, 2], [0], [3, 1]):
        with pytest.raises(ValueError, match="records must end in the text"):
            _text.parse_json(b"1,2\n", np.array(ends), LARGEST, "", 0, [], [])
        with pytest.raises(ValueError, match="records must end in the text"):
            _text.parse_csv(b"1,2\n", np.array(ends), ",", roles, places, 1, 0, LARGEST, 0)
    for place, numbers in ((1, 1), (-1, 1), (0, 0)):
        with pytest.raises(ValueError, match="a place lies outside the columns"):
            _text.parse_csv(
                b"1\n", np.array([2]), ",", roles, np.array([place], np.int32), numbers, 0, LARGEST, 0
            )
    with pytest.raises(ValueError, match="one character"):
        _text.parse_csv(b"1\n", np.array([2]), "", roles, places, 1, 0, LARGEST, 0)


@pytest.mark.slow
def test_the_fuzzer_finds_nothing_in_its_corpus(tmp_path):
    """A short run of tests/fuzz/fuzz_text.cpp: with clang's libFuzzer for some seconds, else its corpus alone."""
    folder = Path(__file__).parents[1] / "fuzz"
    source, program = str(folder / "fuzz_text.cpp"), str(tmp_path / "fuzz_text")
    include = f"-I{folder.parents[1] / 'src/core/text'}"
    # The programs bring sanitizers of their own: not those under which the tests of the core may run.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    run = functools.partial(subprocess.run, capture_output=True, env=environment)
    if clang := shutil.which("clang++"):
        flags = ["-std=c++17", "-g", "-O1", "-fno-sanitize-recover=undefined", include, source, "-o", program]
        if run([clang, "-fsanitize=fuzzer,address,undefined", *flags]).returncode == 0:
            seconds = os.environ.get("KERNELSTREAM_FUZZ_SECONDS", "5")
            (tmp_path / "new").mkdir()
            limits = [f"-max_total_time={seconds}", "-max_len=2048", f"-dict={folder / 'text.dict'}"]
            run([program, *limits, str(tmp_path / "new"), str(folder / "corpus")], check=True, cwd=tmp_path)
            return
    if not (compiler := shutil.which("c++")):
        pytest.skip("no C++ compiler")
    run([compiler, "-std=c++17", "-DKS_REPLAY", include, source, "-o", program], check=True)
    inputs = sorted(map(str, (folder / "corpus").iterdir()))
    done = run([program, *inputs], check=True, text=True)
    assert done.stdout == f"{len(inputs)} inputs\n"
