"""Coverage-guided fuzzing of ``kernelstream.load`` with Atheris (libFuzzer for Python).

    pip install atheris
    python tests/fuzz/fuzz_load.py --seeds /tmp/seeds          # model files of every learner
    python tests/fuzz/fuzz_load.py -max_total_time=1800 -rss_limit_mb=2048 /tmp/corpus tests/fuzz/models /tmp/seeds

Install the package for this, not in editable mode: Atheris sees only what the usual import finds.

An input is a model file. The mutator changes header and arrays and makes the checksum right again (tests/fuzz_models.py), so
that the changes get past the container; libFuzzer keeps the files that reach new lines of the package's Python. Anything but a
model or a ``ModelFileError`` is a finding, and so is a hang, a crash, or an allocation beyond the limit. A model that loads must
score, learn and be saved again, or refuse to with an error of the library.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
MAX_BYTES = 1 << 24


def write_seeds(folder):
    from fuzz_models import seeds

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for i, (name, data) in enumerate(seeds()):
        (folder / f"{name}-{i}").write_bytes(data)


def main():
    if sys.argv[1:2] == ["--seeds"]:
        write_seeds(sys.argv[2])
        return
    import atheris

    with atheris.instrument_imports(include=["kernelstream"]):
        import kernelstream
        from kernelstream import persistence

    import numpy as np

    from fuzz_models import ORDINARY, mutated, teach

    def one_input(data):
        try:
            model, _ = persistence.unpack(data, max_bytes=MAX_BYTES)
        except kernelstream.ModelFileError:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                teach(model)
            except ORDINARY:
                pass

    def mutate(data, max_size, seed):
        rng = np.random.default_rng(seed)
        try:
            record, arrays = persistence._open(data)
            changed = mutated(rng, data, record, arrays)
        except Exception:
            changed = atheris.Mutate(data, max_size)
        return changed if len(changed) <= max_size else data

    def cross(first, second, max_size, seed):
        """The header of one file, and of the arrays some of each."""
        from fuzz_models import sealed

        rng = np.random.default_rng(seed)
        try:
            record, arrays = persistence._open(first)
            _, others = persistence._open(second)
        except Exception:
            return first
        for key in others:
            if rng.random() < 0.3:
                arrays[key] = others[key]
        changed = sealed(record, arrays)
        return changed if len(changed) <= max_size else first

    atheris.Setup(sys.argv, one_input, custom_mutator=mutate, custom_crossover=cross)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
