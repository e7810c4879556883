"""The compiled core itself, at every CPU level that this machine runs. Short: the sanitizers run it too."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from kernelstream._core import levels
from oracles import kernels as oracles

LEVELS = levels()
CORES = {level: importlib.import_module(f"kernelstream._core_{level}") for level in LEVELS}
SIZES = [0, 1, 7, 8, 9, 16, 17, 63, 64, 65]
KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"gamma": 0.3},
    "laplacian": {"gamma": 0.2},
    "polynomial": {"gamma": 0.1, "offset": 0.7, "degree": 3},
    "linear": {},
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS)
each_bits = pytest.mark.parametrize("bits", [64, 32])


@pytest.fixture(params=LEVELS)
def core(request):
    return CORES[request.param]


def dtype_of(bits):
    return np.float64 if bits == 64 else np.float32


def dense(core, X, bits=64):
    return getattr(core, f"Rows{bits}").dense(np.ascontiguousarray(X, dtype_of(bits)))


def csr(core, X, bits=64):
    """CSR by hand: SciPy is not needed here."""
    X = np.asarray(X, dtype_of(bits))
    rows, columns = np.nonzero(X)
    starts = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int64)
    return getattr(core, f"Rows{bits}").csr(X[rows, columns], columns.astype(np.int32), starts, X.shape[1])


def oracle(kernel):
    return getattr(oracles, kernel)(*KERNELS[kernel].values())


def kernel_of(core, kernel):
    return core.Kernel(kernel, **KERNELS.get(kernel, {}))


def matrix(n, d, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < density)


# ---- kernel values ----


@each_bits
@each_kernel
def test_kernel_matrix(core, kernel, bits):
    tight = {"rtol": 1e-12, "atol": 1e-13} if bits == 64 else {"rtol": 2e-5, "atol": 2e-5}
    full = {d: matrix(65, d, d, 0.6).astype(dtype_of(bits)) for d in (1, 3, 54)}
    for d, X in full.items():
        Y = matrix(65, d, d + 1).astype(dtype_of(bits))
        want = oracle(kernel)(X, Y)
        scale = max(1.0, np.abs(want).max())
        for n in SIZES:
            for m in SIZES:
                for make in (dense, csr):
                    got = core.kernel_matrix(
                        make(core, X[:n], bits), dense(core, Y[:m], bits), kernel_of(core, kernel)
                    )
                    assert got.shape == (n, m)
                    assert got.dtype == dtype_of(bits)
                    np.testing.assert_allclose(got / scale, want[:n, :m] / scale, **tight)
        got = core.kernel_matrix(csr(core, X, bits), csr(core, X, bits), kernel_of(core, kernel))
        np.testing.assert_allclose(
            core.kernel_diagonal(csr(core, X, bits), kernel_of(core, kernel)) / scale,
            np.diag(got) / scale,
            **tight,
        )


@each_kernel
def test_no_columns(core, kernel):
    rows = dense(core, np.zeros((9, 0)))
    got = core.kernel_matrix(rows, rows, kernel_of(core, kernel))
    assert (got == {"polynomial": 0.7**3, "linear": 0.0}.get(kernel, 1.0)).all()


@each_kernel
def test_the_grouping_of_rows_changes_no_bit(core, kernel):
    X, Y = matrix(65, 13), matrix(65, 13, 1)
    for make in (dense, csr):
        whole = core.kernel_matrix(make(core, X), dense(core, Y), kernel_of(core, kernel))
        for n in (1, 2, 3, 5, 8, 64):
            for m in (1, 8, 9, 65):
                part = core.kernel_matrix(make(core, X[:n]), dense(core, Y[:m]), kernel_of(core, kernel))
                assert part.tobytes() == np.ascontiguousarray(whole[:n, :m]).tobytes()


@pytest.mark.parametrize(("bits", "low", "tolerance"), [(64, -708.0, 3e-16), (32, -87.0, 3e-7)])
def test_the_exponential(core, bits, low, tolerance):
    """exp(-u) through the kernel of one column: u over the whole range, exact at 0, never above 1."""
    dtype = dtype_of(bits)
    u = np.concatenate([np.linspace(0, -low, 5001), np.logspace(-20, np.log10(-low), 3000)]).astype(dtype)
    got = core.kernel_matrix(
        dense(core, u[:, None], bits), dense(core, [[0.0]], bits), core.Kernel("laplacian")
    )[:, 0]
    want = np.exp(-u.astype(np.longdouble))
    assert (np.abs(got - want) <= tolerance * want).all()
    assert got[0] == 1.0
    assert (got <= 1.0).all()
    far = np.array([[800.0], [1e10], [1e30], [np.finfo(dtype).max]], dtype)
    beyond = core.kernel_matrix(dense(core, far, bits), dense(core, [[0.0]], bits), core.Kernel("gaussian"))
    assert (beyond >= 0).all()
    assert (beyond < (1e-300 if bits == 64 else 1e-37)).all()


@each_kernel
@each_bits
def test_nan_stays_nan(core, kernel, bits):
    X = matrix(20, 5).astype(dtype_of(bits))
    X[3, 2] = X[11, 4] = np.nan
    for make in (dense, csr):
        got = core.kernel_matrix(
            make(core, X, bits), dense(core, matrix(9, 5, 1), bits), kernel_of(core, kernel)
        )
        assert np.isnan(got[[3, 11]]).all()
        assert np.isfinite(np.delete(got, [3, 11], axis=0)).all()
        got = core.kernel_matrix(
            dense(core, matrix(9, 5, 1), bits), make(core, X, bits), kernel_of(core, kernel)
        )
        assert np.isnan(got[:, [3, 11]]).all()
        assert np.isfinite(np.delete(got, [3, 11], axis=1)).all()


@each_bits
def test_first_not_finite(core, bits):
    X = matrix(40, 6, density=0.5)
    for make in (dense, csr):
        assert make(core, X, bits).first_not_finite() is None
        assert make(core, X[:0], bits).first_not_finite() is None
        for bad in (np.nan, np.inf, -np.inf):
            Z = X.copy()
            Z[31, 0] = Z[17, 5] = Z[17, 3] = bad
            assert make(core, Z, bits).first_not_finite() == (17, 3)
            assert make(core, Z, bits).part(18, 40).first_not_finite() == (13, 0)
        assert make(core, np.full((2, 6), 3e38), bits).first_not_finite() is None


# ---- Fourier features ----


def fourier(core, W, bits=64, **options):
    step = {"loss": core.Loss("hinge"), "eta": 0.1, "lam": 0.0}
    options = {"outputs": 1, "regression": False} | step | options
    return getattr(core, f"Mapped{bits}").fourier(np.ascontiguousarray(W, dtype_of(bits)), **options)


@pytest.mark.parametrize("pairs", [1, 7, 8, 9, 33])
@each_bits
def test_fourier_features(core, bits, pairs):
    """Angles up to the far end of the range: cosines and sines of the machine's own library."""
    rng = np.random.default_rng(pairs)
    dtype = dtype_of(bits)
    W = rng.normal(size=(1, pairs)).astype(dtype)
    x = np.concatenate([[0.0], np.logspace(-8, 12, 400), -np.logspace(-3, 7, 100)]).astype(dtype)[:, None]
    stride = -(-pairs // (8 if bits == 64 else 16)) * (8 if bits == 64 else 16)
    angles = (x * W).astype(np.float64)
    for make in (dense, csr):
        z = fourier(core, W, bits).features(make(core, x, bits))
        assert z.shape == (len(x), 2 * stride)
        tolerance = 1e-15 if bits == 64 else 1e-6
        amplitude = np.sqrt(1 / pairs)
        np.testing.assert_allclose(z[:, :pairs], np.cos(angles) * amplitude, rtol=0, atol=tolerance)
        np.testing.assert_allclose(
            z[:, stride : stride + pairs], np.sin(angles) * amplitude, rtol=0, atol=tolerance
        )
        assert (z[:, pairs:stride] == 0).all()
        assert (z[:, stride + pairs :] == 0).all()


def test_features_check_the_width(core):
    model = fourier(core, np.ones((3, 8)))
    for width in (0, 2, 4):
        with pytest.raises(ValueError, match="columns"):
            model.features(dense(core, np.ones((5, width))))


# ---- rules ----

STEP = {"loss": "logistic", "eta": 0.2, "lam": 0.02}
BOGD = STEP | {"clip": 1.0}
PA = {"grows": True, "budget": 300, "C": 0.7, "epsilon": 0.0}
RULES: dict[str, dict[str, Any]] = {
    "perceptron": {},
    "perceptron grown": {"grows": True, "budget": 300},
    "forgetron": {},
    "projectron": {"eta": 0.3},
    "projectron++": {"eta": 0.3},
    "passive-aggressive PA": PA | {"variant": "PA"},
    "passive-aggressive PA-I": PA | {"variant": "PA-I"},
    "passive-aggressive PA-II": PA | {"variant": "PA-II"},
    "bpa-s": {"C": 0.7},
    "kogd": STEP | {"grows": True, "budget": 300},
    "truncated-kogd": STEP,
    "bogd uniform": BOGD | {"removal": "uniform"},
    "bogd nonuniform": BOGD | {"removal": "nonuniform"},
    "bogd smallest": BOGD | {"removal": "smallest"},
}


def expansion(core, rule, bits=64, width=5, outputs=1, kernel="gaussian", function=None, **options):
    how = core.Kernel("callable", function=function) if kernel == "callable" else kernel_of(core, kernel)
    shape = {"width": width, "outputs": outputs, "regression": False, "budget": 13, "seed": 4, "kernel": how}
    options = shape | RULES.get(rule, {}) | options
    if "loss" in options:
        options["loss"] = core.Loss(options["loss"])
    return getattr(core, f"Expansion{bits}")(rule.split()[0], **options)


def stream(outputs, n=150, d=5):
    X = matrix(n, d, 3, 0.8)
    signal = X[:, 0] + X[:, 1] ** 2
    return X, np.where(signal > 0.5, 1.0, -1.0) if outputs == 1 else np.digitize(signal, [0, 1]).astype(float)


def run(model, rows, targets, outputs, weights=None, start=0):
    scores = np.zeros((rows.n, outputs))
    return scores, model.run(rows, start, targets, weights, scores)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("make", [dense, csr])
def test_levels_agree(rule, outputs, make):
    """No level differs from another by more than rounding, on data without ties."""
    X, y = stream(outputs)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 1.5], size=len(y))
    made = []
    for core in CORES.values():
        model = expansion(core, rule, outputs=outputs)
        scores, ran = run(model, make(core, X), y, outputs, weights=weights)
        assert ran == (len(y), core.Stop.done)
        made.append(np.vstack([scores, model.score(dense(core, X))]))
    assert np.abs(made[0]).max() > 0.1
    for other in made[1:]:
        np.testing.assert_allclose(other, made[0], rtol=1e-12, atol=1e-12)


def test_levels_agree_for_maps_and_linear_models():
    X, y = stream(3)
    for loss in ("hinge", "squared_hinge", "logistic", "squared"):
        made = []
        for core in CORES.values():
            step = {"loss": core.Loss(loss), "eta": 0.05, "lam": 0.01}
            options = {"outputs": 3, "regression": False} | step
            landmarks = core.Mapped64.landmarks(
                dense(core, matrix(11, 5, 9)),
                matrix(4, 11, 8),
                kernel=kernel_of(core, "laplacian"),
                **options,
            )
            linear = core.Linear64(width=5, outputs=3, regression=False, epsilon=0.1, C=0.5, variant="PA-II")
            models = [fourier(core, matrix(5, 21, 7), **options), landmarks, linear]
            made.append(np.hstack([run(model, dense(core, X), y, 3)[0] for model in models]))
        for other in made[1:]:
            np.testing.assert_allclose(other, made[0], rtol=1e-12, atol=1e-12)


@each_bits
@pytest.mark.parametrize("rule", RULES)
def test_rows_one_by_one(core, rule, bits):
    """Blocks of eight, patched while points are stored, give what single rows give, to the bit."""
    X, y = stream(3)
    for make in (dense, csr):
        rows = make(core, X, bits)
        whole, single = expansion(core, rule, bits, outputs=3), expansion(core, rule, bits, outputs=3)
        want = [run(single, rows.part(i, i + 1), y[i : i + 1], 3)[0] for i in range(len(y))]
        assert run(whole, rows, y, 3)[0].tobytes() == np.concatenate(want).tobytes()
        for name, array in whole.state().items():
            assert array.tobytes() == single.state()[name].tobytes()


@each_bits
@pytest.mark.parametrize("rule", RULES)
def test_restored_models_go_on(core, rule, bits):
    """Also with more points than the first allocation of a store that grows."""
    X, y = stream(1)
    model = expansion(core, rule, bits)
    run(model, dense(core, X, bits), y, 1)
    twin = expansion(core, rule, bits)
    twin.restore(model.state())
    assert twin.count == model.count
    rows = dense(core, X[::-1], bits)
    assert twin.score(rows).tobytes() == model.score(rows).tobytes()
    assert run(twin, rows, y, 1)[0].tobytes() == run(model, rows, y, 1)[0].tobytes()


def test_a_store_that_grows_beyond_its_first_allocation(core):
    X, y = stream(1)
    model = expansion(core, "kogd")
    run(model, dense(core, X), y, 1)
    assert model.count == 150
    twin = expansion(core, "kogd")
    twin.restore(model.state())
    assert (twin.score(dense(core, X)) == model.score(dense(core, X))).all()
    with pytest.raises(ValueError, match="fit"):
        expansion(core, "kogd", budget=149).restore(model.state())


# ---- NewtonMixture ----


def mixture(core, bits=64, width=5, outputs=1, regression=False, budget=9, local=40):
    sizes = {"budget": budget, "window": 5, "kept": 20, "local": local}
    return getattr(core, f"Mixture{bits}")(width=width, outputs=outputs, regression=regression, **sizes)


def rebuild(core, model, memory):
    """Landmarks, scaling and whitening of a simple kind, then the rows kept once more."""
    arrays, targets, weights = model.kept(20)
    rows = arrays["kept_rows"]
    landmarks = rows[: min(9, len(rows))] / 2
    width, whitening = rows.shape[1], np.tril(np.full((len(landmarks), len(landmarks)), 0.3))
    scaling = np.arange(width, dtype=np.int32), np.full(width, 0.1), np.full(width, 0.5)
    model.build(memory, *scaling, 2.0, dense(core, landmarks), 0.7, whitening)
    model.replay(memory, dense(core, rows), targets, weights)
    if memory == "lasting" and model.local:
        model.refill(dense(core, rows), targets, weights, np.linspace(0.5, 1.0, width))


def run_mixture(core, model, rows, targets, weights, step):
    """All rows, `step` at a time, rebuilding when due."""
    scores, at = np.zeros((rows.n, model.score(rows.part(0, 0)).shape[1])), 0
    while at < rows.n:
        stop = min(rows.n, at + step)
        done, why = model.run(
            rows.part(at, stop), 0, targets[at:stop], weights[at:stop], part := scores[at:stop].copy()
        )
        scores[at : at + done] = part[:done]
        at += done
        assert why in (core.Stop.done, core.Stop.due)
        assert bool(model.due or model.relevance_due) == (why == core.Stop.due)
        for memory in model.due:
            rebuild(core, model, memory)
        if model.relevance_due:
            model.set_relevance(np.linspace(0.5, 1.0, rows.width))
    return scores


@each_bits
@pytest.mark.parametrize("local", [0, 40])
@pytest.mark.parametrize("width", [5, 30])
@pytest.mark.parametrize(("outputs", "regression"), [(1, False), (3, False), (1, True)])
def test_mixture(core, bits, width, outputs, regression, local):
    """Build, replay, run, score, state and restore of dense, sparse and wide rows; one by one gives the same bits."""
    X, y = stream(outputs, 100, width)
    y = X[:, 0] if regression else y
    weights = np.random.default_rng(0).choice([0.0, 1.0, 1.5], size=len(y))
    for make in (dense, csr):
        rows = make(core, X, bits)
        options = (core, bits, width, outputs, regression, 9, local)
        whole, single = mixture(*options), mixture(*options)
        want = run_mixture(core, whole, rows, y, weights, 100)
        assert np.isfinite(want).all()
        assert np.ptp(want) > 0.1
        assert run_mixture(core, single, rows, y, weights, 1).tobytes() == want.tobytes()
        twin = mixture(*options)
        twin.restore(whole.state())
        assert twin.score(rows).tobytes() == single.score(rows).tobytes() == whole.score(rows).tobytes()
        again = [run_mixture(core, model, rows, y, weights, 7) for model in (whole, twin)]
        assert again[0].tobytes() == again[1].tobytes()
        assert all(array.tobytes() == twin.state()[name].tobytes() for name, array in whole.state().items())


def test_mixture_levels_agree():
    X, y = stream(3, 100, 5)
    made = [
        run_mixture(core, mixture(core, outputs=3), dense(core, X), y, np.ones(100), 100)
        for core in CORES.values()
    ]
    for other in made[1:]:
        np.testing.assert_allclose(other, made[0], rtol=1e-9, atol=1e-9)


def test_mixture_refuses_what_does_not_fit(core):
    X, y = stream(3, 40, 5)
    model, rows = mixture(core, outputs=3), dense(core, X)
    run_mixture(core, model, rows, y, np.ones(40), 40)
    state, before = model.state(), model.score(rows)
    for bad in ({"width": -1}, {"outputs": 0}, {"budget": 0}):
        with pytest.raises(ValueError, match="range"):
            mixture(core, **bad)
    for name, array in state.items():
        shapes = [[s + 1 for s in array.shape], [0 for _ in array.shape], [*array.shape, 1]]
        for value in [np.zeros(shape, array.dtype) for shape in shapes] + [None, "no"]:
            with pytest.raises(ValueError, match="state"):
                model.restore(state | {name: value})
    with pytest.raises(ValueError, match="classes"):
        model.restore(state | {"kept_targets": np.full(20, 3.0)})
    for targets, weights in ((np.full(40, 3.0), np.ones(40)), (y, np.ones(39)), (y[:39], np.ones(40))):
        with pytest.raises(ValueError, match=r"range|shape"):
            model.replay("lasting", rows, targets, weights)
    scaling = np.arange(5, dtype=np.int32), np.zeros(5), np.ones(5)
    for points, whitening in (
        (matrix(10, 5), np.eye(10)),
        (matrix(9, 4), np.eye(9)),
        (matrix(9, 5), np.eye(8)),
    ):
        with pytest.raises(ValueError, match="shape"):
            model.build("lasting", *scaling, 1.0, dense(core, points), 1.0, whitening)
    with pytest.raises(ValueError, match="there is no middle"):
        model.build("middle", *scaling, 1.0, dense(core, X[:2]), 1.0, np.eye(2))
    for columns in ([0, 1, 2, 3, 5], [0, 1, 2, 3, -1]):
        with pytest.raises(ValueError, match="column"):
            model.build("lasting", np.int32(columns), *scaling[1:], 1.0, dense(core, X[:2]), 1.0, np.eye(2))
    assert model.score(rows).tobytes() == before.tobytes()


# ---- refusals ----


def csr_arrays(core):
    good = {
        "values": np.array([1.0, 2.0, 3.0]),
        "indices": np.array([0, 2, 1], np.int32),
        "starts": np.array([0, 2, 3], np.int64),
        "width": 3,
    }
    assert core.Rows64.csr(**good).array().tolist() == [[1, 0, 2], [0, 3, 0]]
    return good


@pytest.mark.parametrize(
    "change",
    [
        {"starts": np.array([0, 1000, 3])},
        {"starts": np.array([0, 3, 2, 3])},
        {"starts": np.array([0, -5, 3])},
        {"starts": np.array([1, 2, 3])},
        {"starts": np.array([0, 2, 4])},
        {"starts": np.array([0, 2, 2])},
        {"starts": np.array([], np.int64)},
        {"indices": np.array([0, 3, 1], np.int32)},
        {"indices": np.array([0, -1, 1], np.int32)},
        {"indices": np.array([2, 0, 1], np.int32)},
        {"indices": np.array([0, 0, 1], np.int32)},
        {"indices": np.array([0, 2], np.int32)},
        {"values": np.array([1.0, 2.0])},
        {"width": 2},
        {"width": -1},
    ],
    ids=lambda change: " ".join(f"{k}={np.asarray(v).tolist()}" for k, v in change.items()),
)
def test_malformed_csr_is_refused(core, change):
    with pytest.raises(ValueError, match="CSR"):
        core.Rows64.csr(**(csr_arrays(core) | change))


def test_wrong_types_are_refused(core):
    good = csr_arrays(core)
    for change in (
        {"values": None},
        {"indices": np.zeros((3, 1), np.int32)},
        {"starts": "no"},
        {"width": 1.5},
    ):
        with pytest.raises(TypeError):
            core.Rows64.csr(**(good | change))
    for x in (np.zeros(3), np.zeros((2, 2, 2)), "no", None):
        with pytest.raises(TypeError):
            core.Rows64.dense(x)


def test_parts_stay_within_the_rows(core):
    for rows in (dense(core, matrix(5, 2)), csr(core, matrix(5, 2))):
        assert rows.part(5, 5).n == 0
        for start, stop in ((-1, 2), (3, 2), (0, 6), (6, 6)):
            with pytest.raises(ValueError, match="range"):
                rows.part(start, stop)


def test_rows_keep_their_arrays(core):
    rows = dense(core, matrix(50, 3))  # nobody else holds the array
    part = csr(core, matrix(50, 3)).part(10, 20)
    junk = [np.full((50, 3), 7.0) for _ in range(50)]
    np.testing.assert_array_equal(rows.array(), matrix(50, 3))
    np.testing.assert_array_equal(part.array(), matrix(50, 3)[10:20])
    assert len(junk) == 50


def test_wrong_shapes_are_refused(core):
    X, y = stream(3)
    rows, narrow = dense(core, X), dense(core, X[:, :4])
    linear = core.Linear64(width=5, outputs=3, regression=False, epsilon=0.1, C=0.5, variant="PA")
    for model in (expansion(core, "bpa-s", outputs=3), linear):
        good = np.zeros((150, 3))
        for bad_rows, targets, weights, scores in [
            (narrow, y, None, good),
            (rows, y[:-1], None, good),
            (rows, y, np.ones(149), good),
            (rows, y, None, np.zeros((149, 3))),
            (rows, y, None, np.zeros((150, 2))),
        ]:
            with pytest.raises(ValueError, match=r"columns|one entry per row"):
                model.run(bad_rows, 0, targets, weights, scores)
        with pytest.raises(ValueError, match="one entry per row"):
            model.run(rows, -1, y, None, good)
        with pytest.raises(ValueError, match="columns"):
            model.score(narrow)
        for bad in (-1.0, 3.0, np.nan, np.inf, 1e300):
            targets = y.copy()
            targets[77] = bad
            with pytest.raises(ValueError, match="class index"):
                model.run(rows, 0, targets, None, good)
        assert (model.score(rows) == 0).all()


def test_a_state_of_another_shape_is_refused(core):
    X, y = stream(1)
    for rule in ("bpa-s", "projectron"):
        model = expansion(core, rule)
        run(model, dense(core, X), y, 1)
        state = model.state()
        points = state["points"]
        before = model.score(dense(core, X))
        changes = [{k: np.zeros([s + 1 for s in v.shape], v.dtype)} for k, v in state.items()]
        changes += [{k: np.zeros([max(s - 1, 0) for s in v.shape], v.dtype)} for k, v in state.items()]
        changes += [{"weights": np.zeros((len(points), 2))}]
        changes += [{"inverse": None if rule == "projectron" else np.zeros((len(points), len(points)))}]
        changes += [{"points": np.zeros(shape)} for shape in ((14, 5), (len(points), 4), (0, 5))]
        changes += [{"unknown": np.zeros(3)}]
        for change in changes:
            with pytest.raises(ValueError, match="fit"):
                model.restore(state | change)
        for name in state:
            with pytest.raises(ValueError, match="fit"):
                model.restore({other: array for other, array in state.items() if other != name})
        assert (model.score(dense(core, X)) == before).all()


def test_weights_of_another_shape_are_refused(core):
    linear = core.Linear64(width=5, outputs=3, regression=False, epsilon=0.1, C=0.5, variant="PA")
    mapped = fourier(core, np.ones((5, 8)), outputs=3)
    for shape in ((5, 2), (5, 4), (1000, 3)):
        with pytest.raises(ValueError, match="shape"):
            mapped.weights = np.zeros(shape)
        for model in (linear, mapped):
            with pytest.raises(ValueError, match="fit"):
                model.restore({"weights": np.zeros(shape)})
            assert (model.state()["weights"] == 0).all()
    mapped.weights[:] = 1  # a copy
    assert (mapped.weights == 0).all()


def test_settings_are_checked(core):
    for bad in ({"budget": 0}, {"budget": -1}, {"width": -1}, {"outputs": 0}):
        with pytest.raises(ValueError, match="range"):
            expansion(core, "bpa-s", **bad)
    with pytest.raises(ValueError, match="unknown rule"):
        expansion(core, "nonsense")
    with pytest.raises(ValueError, match="unknown kernel"):
        expansion(core, "bpa-s", kernel="sigmoid")
    with pytest.raises(ValueError, match="unknown loss"):
        expansion(core, "kogd", loss="cubic")
    with pytest.raises(ValueError, match="columns"):
        core.kernel_matrix(dense(core, np.ones((2, 3))), dense(core, np.ones((2, 4))), core.Kernel("linear"))
    with pytest.raises(ValueError, match="one column per landmark"):
        core.Mapped64.landmarks(
            dense(core, matrix(11, 5)), matrix(4, 10), kernel=core.Kernel("linear"), outputs=1, regression=False,
            loss=core.Loss("hinge"), eta=0.1, lam=0.0,
        )  # fmt: skip
    for options, message in (
        ({"C": 1.0, "eta": 0.1}, "no option 'eta'"),
        ({}, "needs the option 'C'"),
        ({"C": "1"}, "'C' has the wrong type"),
    ):
        with pytest.raises(ValueError, match=message):
            core.Expansion64(
                "bpa-s",
                width=2,
                outputs=1,
                regression=False,
                budget=3,
                kernel=core.Kernel("linear"),
                **options,
            )


# ---- kernels in Python ----


def gaussian_in_numpy(X, Y):
    return np.exp(-0.3 * ((X[:, None] - Y[None]) ** 2).sum(axis=2))


@each_bits
@pytest.mark.parametrize("rule", RULES)
def test_a_python_kernel(core, rule, bits):
    X, y = stream(1)
    for make in (dense, csr):
        rows = make(core, X, bits)
        ours = run(expansion(core, rule, bits), rows, y, 1)[0]
        theirs = run(expansion(core, rule, bits, kernel="callable", function=gaussian_in_numpy), rows, y, 1)[
            0
        ]
        if bits == 64:
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_allclose(theirs[:20], ours[:20], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda X, Y: np.ones(3 + len(Y)), ValueError),
        (lambda X, Y: "no", ValueError),
        (lambda X: X, TypeError),
        (None, TypeError),
    ],
)
def test_a_python_kernel_that_does_not_do_its_job(core, function, error):
    X, y = stream(1)
    with pytest.raises(error):
        run(expansion(core, "kogd", kernel="callable", function=function), dense(core, X), y, 1)


def test_a_python_kernel_that_raises(core):
    """The rows measured before an error are not taken for those of the next call."""
    calls, fails = 0, -1

    def function(X, Y):
        nonlocal calls
        calls += 1
        if calls == fails:
            raise KeyError("on purpose")
        return gaussian_in_numpy(X, Y)

    X, y = stream(1)
    rows = dense(core, X)
    model = expansion(core, "kogd", kernel="callable", function=function)
    run(model, dense(core, X[:40]), y[:40], 1)
    want = model.score(rows)
    fails = calls + 30
    with pytest.raises(KeyError):
        model.score(rows)
    assert (model.score(rows) == want).all()


# ---- ends of a run ----


def test_why_a_run_ends(core):
    X, y = stream(1)
    rows = dense(core, X)
    assert run(expansion(core, "truncated-kogd", stops_when_full=True), rows, y, 1)[1] == (13, core.Stop.full)
    assert run(expansion(core, "kogd", budget=13), rows, y, 1)[1] == (13, core.Stop.full)
    assert run(expansion(core, "truncated-kogd"), rows, y, 1)[1] == (150, core.Stop.done)
    assert run(expansion(core, "truncated-kogd"), rows, y, 1, start=150)[1] == (150, core.Stop.done)
    X[[40, 60]] = 1e200
    rows = dense(core, X)
    model = expansion(core, "truncated-kogd", kernel="linear", budget=100)
    scores, ran = run(model, rows, y, 1)
    assert ran == (60, core.Stop.not_finite)
    assert np.isfinite(scores[:60]).all()
    assert not np.isfinite(scores[60])
    before = expansion(core, "truncated-kogd", kernel="linear", budget=100)
    run(before, rows.part(0, 60), y[:60], 1)
    assert all(array.tobytes() == before.state()[name].tobytes() for name, array in model.state().items())


def test_losses(core):
    got = core.Loss("hinge").values(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    assert got.tolist() == [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match="differ in length"):
        core.Loss("hinge").values(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="unknown loss"):
        core.Loss("zero-one")


# ---- copies and views ----


@each_bits
@pytest.mark.parametrize("rule", RULES)
def test_a_clone_is_a_model_of_its_own(core, rule, bits):
    X, y = stream(3)
    rows = dense(core, X, bits)
    model = expansion(core, rule, bits, outputs=3)
    run(model, rows.part(0, 70), y[:70], 3)
    twin, before = model.clone(), model.state()
    rest = [run(m, rows.part(70, 150), y[70:], 3)[0].tobytes() for m in (twin, model)]
    assert rest[0] == rest[1]
    model.restore(before)
    assert run(model, rows.part(70, 150), y[70:], 3)[0].tobytes() == rest[0]
    assert all(array.tobytes() == twin.state()[name].tobytes() for name, array in model.state().items())


@each_bits
def test_clones_of_maps(core, bits):
    X, y = stream(1)
    rows = dense(core, X, bits)
    step = {"outputs": 1, "regression": False, "loss": core.Loss("hinge"), "eta": 0.1, "lam": 0.0}
    points, dtype = dense(core, X[:9], bits), dtype_of(bits)
    for name in ("Mapped", "Adaptive"):
        kind = getattr(core, f"{name}{bits}")
        landmarks = kind.landmarks(
            points, matrix(4, 9).astype(dtype), kernel=kernel_of(core, "laplacian"), **step
        )
        for model in (landmarks, fourier(core, matrix(5, 9), bits)):
            run(model, rows, y, 1)
            twin = model.clone()
            before = twin.score(rows)
            run(model, rows, -y, 1)
            assert twin.score(rows).tobytes() == before.tobytes()
            run(twin, rows, -y, 1)
            assert twin.weights.tobytes() == model.weights.tobytes()


@each_bits
def test_views_copy_nothing(core, bits):
    X = matrix(20, 4, density=0.5).astype(dtype_of(bits))
    rows = dense(core, X, bits)
    view = rows.part(5, 9).dense_view()
    assert view.tobytes() == X[5:9].tobytes()
    assert not view.flags.writeable
    rows_of_x = getattr(core, f"Rows{bits}").dense(X)
    X[6, 1] = 7
    assert rows_of_x.part(5, 9).dense_view()[1, 1] == 7
    sparse = csr(core, X, bits)
    values, indices, indptr = sparse.part(5, 9).csr_view()
    again = getattr(core, f"Rows{bits}").csr(values, indices, indptr, 4)
    del sparse
    assert (again.array() == X[5:9]).all()
    with pytest.raises(ValueError, match="csr_view"):
        again.dense_view()
    with pytest.raises(ValueError, match="dense_view"):
        rows.csr_view()


def test_places_are_copied(core):
    """Where the numbers of CSR rows stand cannot be changed from outside any more."""
    arrays = csr_arrays(core)
    rows = core.Rows64.csr(**arrays)
    arrays["indices"][:] = 2**31 - 1
    arrays["starts"][:] = 2**62
    assert rows.array().tolist() == [[1, 0, 2], [0, 3, 0]]
