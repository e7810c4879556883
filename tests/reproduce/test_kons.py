"""The KONS paper's protocol: regrets, dimensions and bounds against slow computations, claims on made-up results."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from kernelstream.learners import KONS
from kernelstream.rows import as_rows
from kernelstream_reproduce.protocols.kons import PROTOCOL, procedures
from kernelstream_reproduce.protocols.kons.experiments import STREAMS
from kernelstream_reproduce.protocols.kons.procedures import (
    KERNELS,
    RIDGE,
    SIGMA,
    C,
    comparator,
    effective_dimension,
    features,
    leverages,
    regret,
    stream,
)
from kernelstream_reproduce.trials import Trial


@pytest.mark.parametrize("data", STREAMS)
def test_features_make_the_kernel_and_bounds_hold(data):
    X, y = stream(data, 200, seed=3)
    Z = features(data, X)
    K = KERNELS[data](X, X)
    assert np.abs(Z @ Z.T - K).max() < 1e-13
    assert K.diagonal().max() <= 1 + 1e-12
    assert np.abs(y).max() <= C
    assert np.linalg.norm(comparator(Z, y)) <= C + 1e-6


@pytest.mark.parametrize("data", ["quadratic", "gaussian"])
def test_comparator_is_the_best_of_its_norm(data):
    X, y = stream(data, 40, seed=1)
    Z = features(data, X)[:, :8]
    for radius in (0.3, 0.9):
        w = comparator(Z, y, radius)
        slow = minimize(
            lambda v, Z=Z: np.sum((Z @ v - y) ** 2),
            np.zeros(Z.shape[1]),
            constraints={"type": "ineq", "fun": lambda v, r=radius: r**2 - v @ v},
            options={"maxiter": 500},
            tol=1e-10,
        )
        assert np.linalg.norm(w) == pytest.approx(radius)
        assert np.sum((Z @ w - y) ** 2) <= slow.fun * (1 + 1e-6)


@pytest.mark.parametrize("data", ["quadratic", "gaussian"])
def test_dimensions_by_kernel_matrices(data):
    X, _ = stream(data, 60, seed=2)
    K, alpha = KERNELS[data](X, X), 0.7
    slow = []
    for t in range(1, 61):
        part = K[:t, :t]
        slow.append((part @ np.linalg.inv(part + alpha * np.eye(t)))[-1, -1])
    Z = features(data, X)
    tau = leverages(Z, alpha)
    assert tau == pytest.approx(np.array(slow), abs=1e-10)
    assert -np.log1p(-tau).sum() == pytest.approx(np.linalg.slogdet(K / alpha + np.eye(60))[1])
    assert effective_dimension(Z, alpha) == pytest.approx(np.trace(K @ np.linalg.inv(K + alpha * np.eye(60))))


def test_regret_and_bound_by_hand():
    T, settings = 80, {"alpha": 0.01}
    measures = regret(Trial("kons-regret", "quadratic", "KONS", settings, seed=4, rows=T)).measures
    X, y = stream("quadratic", T, 4)
    learner = KONS(C, alpha=0.01, eta=1 / 16, kernel=KERNELS["quadratic"]).start(2, regression=True)
    scores = np.array([learner.run(as_rows(X[t : t + 1]), y[t : t + 1])[0, 0] for t in range(T)])
    w = comparator(features("quadratic", X), y)
    best = features("quadratic", X) @ w
    assert measures["regret"] == pytest.approx(np.sum((scores - y) ** 2 - (best - y) ** 2) / 2)
    K = KERNELS["quadratic"](X, X) * np.outer(scores - y, scores - y) / 16
    online = sum((K[:t, :t] @ np.linalg.inv(K[:t, :t] + 0.01 * np.eye(t)))[-1, -1] for t in range(1, T + 1))
    assert measures["bound"] == pytest.approx(0.01 * w @ w + online / SIGMA, rel=1e-5)
    assert measures["regret"] <= measures["bound"]


def test_first_order_steps_and_one_point():
    """On one point KOGD is f <- f - (f - y) / sqrt(T), and the best function is the mean, zero."""
    T = 50
    measures = regret(Trial("kons-regret", "one-point", "KOGD", {}, rows=T)).measures
    f, lost = 0.0, 0.0
    for t in range(T):
        y = C if t % 2 == 0 else -C
        lost += ((f - y) ** 2 - y**2) / 2
        f -= (f - y) / math.sqrt(T)
    assert measures["regret"] == pytest.approx(lost)


def test_dictionary_measures():
    T = 120
    trial = Trial("kons-dictionary", "gaussian", "KORS", {"beta": "theory"}, seed=1, rows=T)
    measures = procedures.dictionary(trial).measures
    X, _ = stream("gaussian", T, 1)
    K = KERNELS["gaussian"](X, X)
    assert measures["points"] <= T
    assert measures["effective_dimension"] == pytest.approx(
        np.trace(K @ np.linalg.inv(K + RIDGE * np.eye(T))), abs=1e-8
    )
    assert measures["bound"] == pytest.approx(
        3 * 3 * (3 * math.log(T / 0.1) / 0.25) * measures["online_dimension"]
    )
    small = procedures.dictionary(
        Trial("kons-dictionary", "gaussian", "KORS", {"beta": 0.5}, seed=1, rows=T)
    ).measures
    assert small["points"] < measures["points"]
    assert small["ratio_least"] < 0.99


@pytest.mark.parametrize("quick", [True, False])
def test_plan(quick):
    experiments = PROTOCOL.experiments(quick)
    for experiment in experiments:
        ids = [trial.id for cell in experiment.cells for trial in cell.trials({})]
        assert len(ids) == len(set(ids))
        for cell in experiment.cells:
            assert cell.trial.procedure in PROTOCOL.procedures
            json.dumps(cell.trial.key)
    shared = [{t.id for c in e.cells if "Sketched" in c.name for t in c.trials({})} for e in experiments]
    assert shared[1] <= shared[0]  # run once for both
    cost = sum(cell.trial.cost * len(cell.seeds) for e in experiments for cell in e.cells)
    assert cost < (15 if quick else 600)


def made_up(grow):
    """Results in which the regret of each learner is what `grow` says."""
    lengths = [100, 200, 400, 800, 1600]
    return {
        (data, label, json.dumps({"T": T})): [
            {
                "measures": {
                    "regret": grow[label](T),
                    "rounds": T,
                    "bound": 1e3,
                    "bound_effective": 1e4,
                    "second_order_points": 5.0,
                },
                "seconds": 0.0,
                "curve": None,
            }
        ]
        for data in STREAMS
        for label in grow
        for T in lengths
    }


def verdicts(results):
    return {claim.text: claim.verdict for claim in PROTOCOL.claims("kons-regret", results)}


def test_verdicts_both_ways():
    log, root = (lambda T: 10 * math.log(T)), (lambda T: T**0.5)
    grow = {
        "KONS": log,
        "KONS, alpha 1": log,
        "Sketched-KONS, gamma 0.1": lambda T: 2 * log(T),
        "Sketched-KONS, gamma 0": lambda T: T**0.9,
        "CON-KONS": log,
        "KOGD": root,
    }
    assert set(verdicts(made_up(grow)).values()) == {"holds"}
    wrong = {
        "KONS": lambda T: 2e4 * T,
        "KONS, alpha 1": lambda T: 2e4 * T,
        "Sketched-KONS, gamma 0.1": lambda T: 1e6 * T,
        "Sketched-KONS, gamma 0": log,
        "CON-KONS": root,
        "KOGD": lambda T: 1e3 * T**0.9,
    }
    found = verdicts(made_up(wrong))
    assert set(found.values()) == {"does not hold"}
    late = verdicts(made_up(grow | {"KONS, alpha 1": root}))  # a large alpha puts the logarithm off
    assert late["For curved losses the regret of KONS grows like log T."] == "holds in part"
    mixed = made_up(grow)
    for key in mixed:
        if key[:2] == ("gaussian", "KONS"):
            mixed[key][0]["measures"]["bound"] = 1.0
    assert verdicts(mixed)["The regret of KONS is at most alpha |w|^2 + d_onl / sigma."] == "holds in part"


def test_claims_and_charts_of_part_of_the_results():
    for name in ("kons-regret", "kons-dictionary"):
        assert {claim.verdict for claim in PROTOCOL.claims(name, {})} == {"not run"}
    results = made_up({"KONS": math.log, "KOGD": math.sqrt})
    one = dict(list(results.items())[:1])
    PROTOCOL.claims("kons-regret", one)
    chart = PROTOCOL.charts("kons-regret", results)[0]
    assert {line.name for line in chart.series} == {"KONS", "KOGD", "bound of KONS"}
    assert len(PROTOCOL.charts("kons-regret", one)) == 1
    empty = {key: [] for key in results}
    assert PROTOCOL.charts("kons-regret", empty) == []
    assert {claim.verdict for claim in PROTOCOL.claims("kons-regret", empty)} == {"not run"}


def test_dictionary_verdicts():
    def row(T, **changed):
        measures = {"points": 3 * math.log(T), "bound": 9 * math.log(T), "online_dimension": math.log(T)}
        measures |= {
            "log_determinant": 2 * math.log(T),
            "lemma3": 3 * math.log(T),
            "effective_dimension": 2.0,
        }
        measures |= {
            "online_dimension_estimated": 2 * math.log(T),
            "ratio_least": 0.8,
            "ratio_largest": 1.2,
            "rounds": T,
            "second_order_points": 0.1 * T,
        }
        return {"measures": measures | changed, "seconds": 0.0, "curve": None, "rows": T}

    def results(**changed):
        labels = ("KORS, beta 2", "KORS, beta of Theorem 2", "Sketched-KONS, gamma 0.1")
        return {
            (data, label, json.dumps({"T": T})): [row(T, **changed)]
            for data in ("quadratic", "gaussian")
            for label in labels
            for T in (100, 200, 400)
        }

    assert {c.verdict for c in PROTOCOL.claims("kons-dictionary", results())} == {"holds"}
    wrong = results(
        points=90.0,
        log_determinant=0.0,
        ratio_least=0.1,
        online_dimension_estimated=0.0,
        second_order_points=1e3,
    )
    assert {c.verdict for c in PROTOCOL.claims("kons-dictionary", wrong)} == {"does not hold"}
    assert len(PROTOCOL.charts("kons-dictionary", wrong)) == 2
