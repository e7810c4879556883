"""Threads: any number may use one model, their calls come one after the other; misuse raises, and never hangs or crashes."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

from fuzz_models import SMALL
from kernelstream import learners
from kernelstream.rows import as_rows

NAMES = list(learners.registered(plugins=False))
NO_CALLABLE = {"FOGD", "DualSGD", "RRF", "DoublySGD", "OKSSIL", "OKLGD"}
CALLABLE = [
    name
    for name in NAMES
    if "kernel" in getattr(learners, name)._get_param_names() and name not in NO_CALLABLE
]
SECONDS = 60  # a test that waits longer than this hangs


def options(name, **more):
    kind = getattr(learners, name)
    small = {"budget": 5} if "budget" in kind._get_param_names() else {}
    if name == "BSGD" and "kernel" in more:
        more["maintenance"] = "removal"  # merging is for the Gaussian kernel
    return SMALL.get(name, small) | more


def started(name, **more):
    kind = getattr(learners, name)
    return kind(**options(name, **more)).start(3, 1, regression=not kind.classification)


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.8)
    return X, np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0)


def slow_gaussian(X, Y):
    time.sleep(0.0005)  # gives the interpreter lock away
    return np.exp(-0.3 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


def together(*jobs):
    """Runs all at once and returns what they raised; fails if one does not end."""
    errors = []

    def safely(job):
        try:
            job()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=safely, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "a thread hangs"
    return errors


@pytest.mark.parametrize("name", NAMES)
def test_two_threads_use_one_model(name):
    learner = started(name)
    X, y = stream(300)
    learner.run(as_rows(X[:100]), y[:100])

    def learn():
        for i in range(100, 300, 5):
            learner.run(as_rows(X[i : i + 5]), y[i : i + 5])

    def look():
        for _ in range(40):
            learner.score(as_rows(X))
            learner.state()
            assert learner.nbytes > 0

    together(learn, look)  # what they raise is theirs: learners are not protected as a whole
    learner.score(as_rows(X))


@pytest.mark.parametrize("name", CALLABLE)
def test_the_state_during_a_run_with_a_callable_kernel(name):
    learner = started(name, kernel=slow_gaussian)
    X, y = stream(60)
    core = next(value for value in vars(learner).values() if hasattr(value, "clone"))
    done = threading.Event()

    def learn():
        try:
            learner.run(as_rows(X), y)
        finally:
            done.set()

    def look():
        while not done.is_set():
            with contextlib.suppress(
                Exception
            ):  # parts of some learners are in Python, and not protected as a whole
                learner.state()
            core.clone()
            assert core.nbytes > 0

    assert together(learn, look) == []


@pytest.mark.parametrize("name", CALLABLE)
def test_a_kernel_function_that_uses_its_own_model(name):
    """It would wait for itself."""
    X, y = stream(30)

    def kernel(A, B):
        if inside:
            core.nbytes  # noqa: B018
        return slow_gaussian(A, B)

    inside = False
    learner = started(name, kernel=kernel)
    learner.run(as_rows(X[:12]), y[:12])
    core = next(value for value in vars(learner).values() if hasattr(value, "clone"))
    inside = True
    errors = together(lambda: core.score(as_rows(X)))
    assert len(errors) == 1
    assert "must not use the model" in str(errors[0])
    inside = False
    assert np.isfinite(core.score(as_rows(X))).all()


CHANGED = """
    import threading
    import numpy as np, scipy.sparse
    from kernelstream.rows import as_rows
    from test_threads import started, stream

    for name in {names!r}:
        learner = started(name)
        X, y = stream(400)
        csr = scipy.sparse.csr_matrix(X)
        targets, weights = y.copy(), np.ones(len(y))
        rows = as_rows(csr)
        stop = threading.Event()

        def change():
            rng = np.random.default_rng(0)
            while not stop.is_set():
                csr.indices[:] = rng.integers(-2**31, 2**31 - 1, csr.nnz)
                csr.indptr[:] = rng.integers(-2**31, 2**31 - 1, len(csr.indptr))
                csr.data[:] = rng.normal(size=csr.nnz)
                targets[:] = rng.normal(size=len(targets))

        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(3):
                try:
                    learner.run(rows, targets, weights)
                except ValueError:
                    pass
                learner.score(rows)
        finally:
            stop.set()
            thread.join()
        print(name, "survived", flush=True)
"""


def python(code, timeout=SECONDS * 2):
    code = f"import sys; sys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\n" + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_arrays_changed_during_a_run_do_no_harm(part):
    """In a process of its own, which would crash."""
    names = NAMES[part::4]
    ran = python(CHANGED.format(names=names))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.split("\n") == [f"{name} survived" for name in names] + [""]


def test_a_model_in_a_circle_with_its_kernel_is_collected():
    class Holder:
        pass

    for name in CALLABLE:
        holder = Holder()
        holder.learner = started(name, kernel=lambda A, B, holder=holder: slow_gaussian(A, B))
        X, y = stream(12)
        holder.learner.run(as_rows(X), y)
        gone = weakref.ref(holder)
        del holder
        gc.collect()
        assert gone() is None, name


def test_no_leak_is_reported_at_the_end():
    ran = python(
        """
        from test_threads import CALLABLE, started, stream, slow_gaussian
        from kernelstream.rows import as_rows
        X, y = stream(12)
        kept = {}
        for name in CALLABLE:
            kept[name] = started(name, kernel=lambda A, B: kept and slow_gaussian(A, B))
            kept[name].run(as_rows(X), y)
        """
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
