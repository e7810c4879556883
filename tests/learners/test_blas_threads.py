"""The number of BLAS threads changes no bit: every learner, with matrices large enough for BLAS to divide them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import pytest

from kernelstream.blas import one_thread
from kernelstream.learners import registered

SCRIPT = """
import hashlib, json, sys
import numpy as np
from kernelstream import learners

LARGE = {"NOLANA": {"budget": 150, "epsilon": 0.1}, "ProsNKons": {"max_size": 150, "gamma": 0.01, "beta": 5.0},
         "SkeGD": {"budget": 150, "cycle": 60}, "ProjKA": {"warmup": 200}, "OKLGD": {"max_size": 10_000}}
digests = {}
rng = np.random.default_rng(0)
X = rng.normal(size=(500, 30))
y = np.where(X[:, 0] + X[:, 1] ** 2 > 1, 1.0, -1.0)
for name, kind in vars(learners).items():
    if isinstance(kind, type) and kind is not learners.Learner:
        learner = kind(**LARGE.get(name, {})).start(30)
        from kernelstream.rows import as_rows
        scores = learner.run(as_rows(X), y)
        state = learner.state()
        text = scores.tobytes() + b"".join(state[key].tobytes() for key in sorted(state))
        digests[name] = hashlib.blake2b(text).hexdigest()
print(json.dumps(digests))
"""


def digests(threads: int, python: str = sys.executable) -> dict[str, str]:
    limits = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [python, "-c", SCRIPT],
        env=os.environ | limits,
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def one() -> dict[str, str]:
    return digests(1)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 4])
def test_threads_of_blas_change_no_bit(one, threads):
    many = digests(threads)
    assert many.keys() == registered(plugins=False).keys()
    assert [name for name in one if one[name] != many[name]] == []


def test_the_limit_holds_in_every_thread_until_it_leaves():
    """A thread that leaves must not end the limit of another, and a thread that enters must get it."""
    from threadpoolctl import threadpool_info, threadpool_limits

    seen, gate = [], threading.Barrier(3)

    def work():
        gate.wait()
        for _ in range(20):
            with one_thread():
                seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    workers = [threading.Thread(target=work) for _ in range(3)]
    with threadpool_limits(2, user_api="blas"):  # the tests themselves have one
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert set(seen) == {1}
