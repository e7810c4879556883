"""Models that merge: identities that hold exactly, bounds where they do not, and what is refused."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_classification

import kernelstream
from kernelstream import Gaussian, KernelClassifier, KernelRegressor, MergeError, ModelFileError
from kernelstream.learners import (
    BOGD,
    FOGD,
    KRLS,
    NOGD,
    LinearPA,
    NewtonMixture,
    Projectron,
    newton_mixture,
    registered,
)
from kernelstream.learners.mixture_delta import newest_last
from kernelstream.merging import add, combine, delta, digest, in_epochs, learn_epoch
from kernelstream.persistence import pack, unpack
from kernelstream.rows import rows_of_state

RNG = np.random.default_rng(5)
X = RNG.normal(size=(1600, 6))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * RNG.normal(size=len(X))
FIRST = 300

#: Learners with the rows that their base needs before it can be branched.
LEARNERS = {
    "krls": KRLS(nu=0.05, kernel=Gaussian(gamma=0.05)),
    "nogd": NOGD(50, eta=0.1),
    "fogd": FOGD(50, eta=0.1),
    "linear": LinearPA(),
    "bogd": BOGD(60, eta=0.1),
    "default": NewtonMixture(40),
    "global": NewtonMixture(40, memory=0),
}


def base_of(learner, y=Y):
    return KernelRegressor(clone(learner)).partial_fit(X[:FIRST], y[:FIRST])


def parts_of(k, first=FIRST):
    return [slice(first + i, None, k) for i in range(k)]


def deltas_of(base, k, y=Y):
    return [delta(base, X[part], y[part], task=f"part {i}") for i, part in enumerate(parts_of(k))]


def same_state(a, b, close=0.0):
    a, b = a.learner_.state(), b.learner_.state()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=close, atol=close, err_msg=name)


def test_every_learner_merges_or_says_why_not():
    for name, learner in registered(plugins=False).items():
        said = bool(learner.merge_guarantee)
        assert said or learner.merge_refusal != "nobody has said how", name


@pytest.mark.parametrize("k", [1, 2, 7])
def test_least_squares_in_parts_is_one_pass(k):
    base = base_of(LEARNERS["krls"])
    one = kernelstream.branch(base).partial_fit(X[FIRST:], Y[FIRST:])
    merged, _ = unpack(add(pack(base), deltas_of(pack(base), k)))
    np.testing.assert_allclose(merged.predict(X), one.predict(X), atol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_the_least_squares_expert_of_the_default_in_parts_is_one_pass(k):
    y = np.where(Y > 0, 1, 0)
    base = KernelClassifier(NewtonMixture(40)).partial_fit(X[:FIRST], y[:FIRST], classes=[0, 1])
    one = kernelstream.branch(base).partial_fit(X[FIRST:], y[FIRST:])
    one.learner_._core.flush()
    merged, _ = unpack(add(pack(base), deltas_of(pack(base), k, y)))
    for name in ("least_squares_weights", "least_squares_covariance"):
        a, b = merged.learner_.state()[name], one.learner_.state()[name]
        np.testing.assert_allclose(a, b, atol=1e-8 * np.abs(b).max())


def test_experts_that_forget_are_averaged():
    """Two parts of the same rows are one such part; an expert whose statistics add knows more then."""
    base = pack(base_of(NewtonMixture(40)))
    parts = [delta(base, X[FIRST:], Y[FIRST:], task=f"part {i}") for i in range(2)]
    one, two = (unpack(add(base, parts[:n]))[0].learner_.state() for n in (1, 2))
    for expert in ("recent", "linear"):
        for name in (f"{expert}_weights", f"{expert}_covariance"):
            np.testing.assert_allclose(two[name], one[name], atol=1e-8 * np.abs(one[name]).max())
    assert np.trace(two["least_squares_covariance"]) < 0.9 * np.trace(one["least_squares_covariance"])


@pytest.mark.parametrize("outputs", [0, 2, 3])
def test_one_part_of_the_default_is_one_pass(outputs):
    y = np.digitize(Y, [0, 1][: outputs - 1]) if outputs else Y
    model, given = (KernelClassifier, {"classes": range(outputs)}) if outputs else (KernelRegressor, {})
    base = model(NewtonMixture(40)).partial_fit(X[:FIRST], y[:FIRST], **given)
    one = kernelstream.branch(base).partial_fit(X[FIRST:900], y[FIRST:900])
    part = delta(pack(base), X[FIRST:900], y[FIRST:900], task="all")
    merged = unpack(add(pack(base), [part]))[0]
    merged.learner_.hold()
    if one.learner_._core.passed_relevance(FIRST):  # what is due is done after the merge
        one.learner_._estimate_relevance()
    scores = [m.decision_function(X) if outputs else m.predict(X) for m in (merged, one)]
    np.testing.assert_allclose(*scores, rtol=1e-7, atol=1e-7)


def test_sparse_rows_of_many_features_merge():
    rng = np.random.default_rng(3)
    rows = scipy.sparse.random(400, 5000, 0.004, "csr", random_state=3, data_rvs=lambda n: rng.normal(size=n))
    y = np.asarray(rows @ rng.normal(size=5000) > 0).astype(int)
    base = pack(KernelClassifier(NewtonMixture(20)).partial_fit(rows[:200], y[:200], classes=[0, 1]))
    one = kernelstream.branch(unpack(base)[0]).partial_fit(rows[200:], y[200:])
    whole = unpack(add(base, [delta(base, rows[200:], y[200:], task="all")]))[0]
    np.testing.assert_allclose(
        whole.decision_function(rows), one.decision_function(rows), rtol=1e-7, atol=1e-7
    )
    a, b, c = (delta(base, rows[200 + k :: 3], y[200 + k :: 3], task=f"{k}") for k in range(3))
    merged = unpack(add(base, [a, b, c]))[0]
    same_state(unpack(add(base, [combine([c, b]), a]))[0], merged, close=1e-7)
    kept = rows_of_state("kept_rows", merged.learner_.state(), 5000).toarray()
    assert {row.tobytes() for row in kept} == {row.tobytes() for row in rows[-80:].toarray()}
    merged.partial_fit(rows, y)


@pytest.mark.parametrize("outputs", [2, 3])
def test_trees_of_merged_parts_have_learnt_the_rows_of_all(outputs):
    y = np.digitize(Y, [0, 1][: outputs - 1])
    base = pack(KernelClassifier(NewtonMixture(40)).partial_fit(X[:FIRST], y[:FIRST], classes=range(outputs)))
    one = unpack(base)[0].partial_fit(X[FIRST:], y[FIRST:])  # not held: nothing but relevances is due by then
    one = {name: array for name, array in one.learner_.state().items() if name.startswith("trees_")}
    for k in (1, 3):
        merged = unpack(add(base, deltas_of(base, k, y)))[0].learner_.state()
        for name in one if k == 1 else ("trees_next", "trees_grown"):
            np.testing.assert_array_equal(merged[name], one[name], err_msg=name)
        rows = ("trees_rows", "trees_targets", "trees_weights")
        for a, b in zip(
            *(sorted_rows(*(state[name] for name in rows)) for state in (merged, one)), strict=True
        ):
            np.testing.assert_array_equal(a, b)


def sorted_rows(*columns):
    table = np.column_stack(columns)
    return table[np.lexsort(table.T)]


@pytest.mark.parametrize("name", LEARNERS)
def test_an_empty_part_changes_nothing(name):
    base = pack(base_of(LEARNERS[name]))
    full = deltas_of(base, 2)
    empty = delta(base, X[:0], Y[:0], task="nothing")
    same_state(unpack(add(base, [empty]))[0], unpack(base)[0])
    same_state(unpack(add(base, [*full, empty]))[0], unpack(add(base, full))[0], close=1e-7)


@pytest.mark.parametrize("name", LEARNERS)
def test_order_and_grouping_do_not_matter(name):
    base = pack(base_of(LEARNERS[name]))
    a, b, c = deltas_of(base, 3)
    whole = unpack(add(base, [a, b, c]))[0]
    same_state(unpack(add(base, [c, a, b]))[0], whole)  # added in the order of their tasks: to the bit
    same_state(unpack(add(base, [combine([c, b]), a]))[0], whole, close=1e-7)
    assert add(base, [a, b, c, b]) == add(base, [a, b, c])  # a task done twice counts once
    assert delta(base, X[parts_of(3)[0]], Y[parts_of(3)[0]], task="part 0") == a


@pytest.mark.parametrize("name", LEARNERS)
def test_merged_is_about_as_good_as_one_pass(name):
    base = base_of(LEARNERS[name])
    merged, _ = unpack(add(pack(base), deltas_of(pack(base), 4)))
    one = kernelstream.branch(base).partial_fit(X[FIRST:], Y[FIRST:])
    fresh = np.random.default_rng(6).normal(size=(500, 6))
    truth = np.sin(fresh[:, 0]) + 0.5 * fresh[:, 1] * fresh[:, 2]
    errors = [np.sqrt(np.mean((m.predict(fresh) - truth) ** 2)) for m in (merged, one, base)]
    assert errors[0] < max(1.1 * errors[1], errors[2])


def test_the_default_goes_on_in_epochs():
    features, labels = make_classification(6000, 12, n_informative=6, n_clusters_per_class=3, random_state=1)
    train, test = slice(0, 5000), slice(5000, None)
    one = KernelClassifier().partial_fit(features[train], labels[train], classes=[0, 1])
    model = pack(KernelClassifier().partial_fit(features[:1000], labels[:1000], classes=[0, 1]))
    for start in range(1000, 5000, 1000):
        rows = [np.arange(start + k, start + 1000, 4) for k in range(4)]
        model = add(model, [delta(model, features[r], labels[r], task=str(k)) for k, r in enumerate(rows)])
    merged = unpack(model)[0]
    assert merged.learner_.state()["learnt"].tolist() == [5000]
    assert merged.score(features[test], labels[test]) > one.score(features[test], labels[test]) - 0.01
    merged.partial_fit(features[test], labels[test])  # and it is a stream's model again


def test_merge_of_models():
    base = base_of(LEARNERS["krls"])
    parts = [kernelstream.branch(base).partial_fit(X[p], Y[p]) for p in parts_of(2)]
    before = pack(parts[0]), pack(base)
    one = kernelstream.branch(base).partial_fit(X[FIRST:], Y[FIRST:])
    np.testing.assert_allclose(kernelstream.merge(parts, base).predict(X), one.predict(X), atol=1e-8)
    assert (pack(parts[0]), pack(base)) == before
    linear = [KernelRegressor(LinearPA(), scale=True).fit(X[p], Y[p]) for p in parts_of(2, 0)]
    scaler = kernelstream.merge(linear, rows=[10, 30]).scaler_.arrays
    assert scaler["rows"].tolist() == [len(X)]


def test_scales_are_summed():
    base = KernelRegressor(LinearPA(), scale=True).partial_fit(X[:FIRST], Y[:FIRST])
    one = kernelstream.branch(base).partial_fit(X[FIRST:], Y[FIRST:])
    merged = unpack(add(pack(base), deltas_of(pack(base), 3)))[0]
    for name, array in one.scaler_.arrays.items():
        np.testing.assert_allclose(merged.scaler_.arrays[name], array, rtol=1e-10, atol=1e-9)


def test_what_is_refused():
    base = pack(base_of(LEARNERS["krls"]))
    other = pack(base_of(LEARNERS["krls"], Y + 1))
    a, b = deltas_of(base, 2)
    for wrong, message in (
        (lambda: add(other, [a]), "of another base"),
        (lambda: add(base, [a, deltas_of(other, 2)[1]]), "of different bases"),
        (lambda: add(base, [base]), "not a delta, but a model"),
        (lambda: add(base, [a[:-9] + b"123456789"]), "not a delta: damaged"),
        (lambda: add(base, [a[:100]]), "not a delta: damaged"),
        (lambda: add(base, [combine([a, b]), a]), "in two deltas that are not the same"),
        (lambda: combine([]), "nothing to put together"),
        (lambda: kernelstream.merge([]), "nothing to merge"),
        (lambda: kernelstream.merge([unpack(base)[0]], unpack(base)[0], rows=[1, 2]), "one number per model"),
        (lambda: kernelstream.merge([unpack(base)[0]], base_of(LEARNERS["nogd"])), "did not go on from"),
        (lambda: deltas_of(pack(base_of(Projectron(), np.sign(Y))), 1), "is a classifier"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            wrong()
        assert isinstance(caught.value, MergeError) or "classifier" in message
    with pytest.raises(ModelFileError, match="not a model, but a delta"):
        unpack(a)
    with pytest.raises(MergeError, match="has changed since the base"):
        kernelstream.merge([base_of(LEARNERS["krls"])])
    young = KernelRegressor(NewtonMixture(40)).partial_fit(X[:20], Y[:20])
    grown = unpack(pack(young))[0].partial_fit(X[20:200], Y[20:200])  # not held: it has rebuilt its memories
    with pytest.raises(MergeError, match="which rebuilds nothing"):
        kernelstream.merge([grown], young)


@pytest.mark.parametrize("first", [10, 50, 100])
def test_parts_of_a_young_base_bring_their_first_errors(first):
    """From the first 64 the usual error is told: what a part has seen of them is not 0."""
    base = KernelRegressor(NewtonMixture(40)).partial_fit(X[:first], Y[:first])
    parts = [kernelstream.branch(base).partial_fit(X[i : i + 20], Y[i : i + 20]) for i in (100, 120)]
    merged = kernelstream.merge(parts, base)

    def errors(model):
        """Those that there are, in units of the targets."""
        state = model.learner_.state()
        return (state["first_errors"] * state["target_spread"])[: int(state["noise_rounds"][0])]

    known = len(errors(base))
    want = np.concatenate([errors(base), *(errors(part)[known:] for part in parts)])
    got = errors(merged)
    assert len(got) == min(64, len(want))
    np.testing.assert_allclose(got[:known], want[:known], rtol=1e-9)
    assert all(np.isclose(want, error, rtol=1e-9, atol=0).any() for error in got)
    if len(want) < 64:
        np.testing.assert_allclose(np.sort(got), np.sort(want), rtol=1e-9)
    merged.partial_fit(X[200:201], Y[200:201])
    spread = np.abs(Y[200:300] - merged.predict(X[200:300])).std()
    deviation = merged.predict(X[200:300], return_std=True)[1]
    assert (deviation > 0.1 * spread).all()


def test_a_class_that_the_base_does_not_know_is_refused():
    base = pack(KernelClassifier(LinearPA()).partial_fit(X[:50], np.arange(50) % 2))
    with pytest.raises(MergeError, match="give `classes` to its first"):
        delta(base, X[:3], [0, 1, 2], task="one")


def test_refusals_name_their_reason():
    for name, learner in registered(plugins=False).items():
        if learner.merge_guarantee:
            continue
        y = np.where(Y > 0, 1, 0)
        model = KernelClassifier(learner()).partial_fit(X[:200], y[:200])
        with pytest.raises(MergeError, match="cannot be merged: "):
            kernelstream.merge([kernelstream.branch(model)], model)
        assert name


@pytest.mark.parametrize("learner", [NewtonMixture(40), LinearPA()], ids=["default", "linear"])
def test_an_epoch_in_place_is_one_by_bytes(learner):
    model = KernelRegressor(learner, scale=True).partial_fit(X[:FIRST], Y[:FIRST])
    rows = {f"{i}": part for i, part in enumerate(parts_of(6))}

    def learn(base, tasks):
        return [delta(base, X[rows[task]], Y[rows[task]], task=task) for task in tasks]

    by_bytes = in_epochs(pack(model), ["012", "345"], learn)
    sizes = [learn_epoch(model, tasks, learn)[0] for tasks in ("012", "345")]
    assert pack(model) == by_bytes
    assert min(sizes) > 0
    called = []
    once = learn_epoch(
        model, "0", lambda base, tasks: [b"damaged", *learn(base, tasks)], meanwhile=lambda: called.append(1)
    )
    assert (len(once[1]), called) == (1, [1])
    with pytest.raises(ZeroDivisionError):
        learn_epoch(model, "0", learn, meanwhile=lambda: 1 / 0)


def test_epochs_do_refused_tasks_again_and_give_up_with_a_name():
    start = pack(base_of(LEARNERS["linear"]))
    other = pack(base_of(LEARNERS["linear"], Y + 1))
    rows = {f"{i}": part for i, part in enumerate(parts_of(6))}
    epochs = ["012", "345"]

    def made(base, task):
        return delta(base, X[rows[task]], Y[rows[task]], task=task)

    plain = in_epochs(start, epochs, lambda base, tasks: [made(base, task) for task in tasks])
    asked, told = [], []

    def wrong_at_first(base, tasks):
        """Of the first attempt one delta is damaged, one is of another base, and one does not come."""
        asked.append("".join(tasks))
        if asked.count(asked[-1]) == 1:
            return [made(base, tasks[0])[:-7], made(other, tasks[1])]
        return [made(base, task) for task in tasks] + [made(base, tasks[0])]

    assert in_epochs(start, epochs, wrong_at_first, progress=told.append, all_rows=len(X) - FIRST) == plain
    assert asked == ["012", "012", "345", "345"]
    assert told[-1].rows == len(X) - FIRST
    assert told[-1].seconds_left == 0
    assert len(told[0].refused) == 2
    in_epochs(
        start,
        epochs,
        lambda base, tasks: [made(base, t) for t in tasks],
        rows=FIRST,
        all_rows=len(X),
        progress=told.append,
    )
    first, last = told[-2:]
    assert (last.rows, last.seconds_left) == (len(X), 0)
    rate = (first.rows - FIRST) / first.seconds  # rows learnt before took none of these seconds
    np.testing.assert_allclose(first.seconds_left, (len(X) - first.rows) / rate)
    with pytest.raises(
        MergeError, match="1 of 3 tasks failed 3 times, the first of them '2': no delta of it came"
    ):
        in_epochs(start, epochs, lambda base, tasks: [made(base, t) for t in tasks if t != "2"], retries=2)
    with pytest.raises(MergeError, match="'9' was not asked for"):
        in_epochs(start, epochs, lambda base, tasks: [delta(base, X[:5], Y[:5], task="9")], retries=0)


def test_a_tree_leaves_out_what_is_refused_and_says_so():
    base = pack(base_of(LEARNERS["linear"]))
    a, b = deltas_of(base, 2)
    some = combine([a, b[:50]], of=digest(base), names=["first", "second"])
    assert add(base, [some]) == add(base, [a])
    nothing = combine([b"?"], of=digest(base))
    assert add(base, [combine([some, nothing], of=digest(base))]) == add(base, [a])
    told = []
    answers = iter([combine([some, nothing], of=digest(base)), combine([a, b], of=digest(base))])
    whole = in_epochs(base, [{"part 0": 1, "part 1": 1}], lambda *_: [next(answers)], progress=told.append)
    assert whole == add(base, [a, b])
    assert [reason.partition(":")[0] for reason in told[0].refused] == ["second", "not a delta"]


def test_categories_that_parts_meet_get_features_in_the_next_epoch():
    colours = np.array(["red", "blue", "green", "black"])
    codes = np.concatenate([np.arange(300) % 2, np.arange(900) % 4])
    y = np.where(codes == 3, 5.0, codes) + 0.0
    table = {"colour": colours[codes], "size": np.where(np.arange(1200) % 7, 1.0, np.nan)}
    parts = {f"{i}": slice(300 + 100 * i, 400 + 100 * i) for i in range(9)}
    base = KernelRegressor(LinearPA(), columns="auto").partial_fit(
        {name: column[:300] for name, column in table.items()}, y[:300]
    )

    def learn(base, tasks):
        return [
            delta(base, {n: c[parts[task]] for n, c in table.items()}, y[parts[task]], task=task)
            for task in tasks
        ]

    epochs = [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"]]
    told = []
    model = unpack(kernelstream.merging.in_epochs(pack(base), epochs, learn, progress=told.append))[0]
    names = model.encoder_.get_feature_names_out().tolist()
    assert sorted(names) == sorted([*base.encoder_.get_feature_names_out(), "colour=green", "colour=black"])
    assert told[-1].rows == 900
    few = {"colour": colours, "size": np.ones(4)}
    np.testing.assert_allclose(model.predict(few), [0, 1, 2, 5], atol=0.5)
    assert kernelstream.merging.in_epochs(pack(base), epochs, learn) == pack(model)


@pytest.mark.parametrize("ring", ["trees", "local"])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_epoch_that_fails_half_way_leaves_the_model_as_it_was(monkeypatch, ring, error):
    """The default is changed in several steps, of which any may run out of memory or be interrupted."""
    model = KernelRegressor(NewtonMixture(20)).partial_fit(X[:300], Y[:300])
    before = pack(model)

    def learn(base, tasks):
        return [delta(base, X[300:600], Y[300:600], task=task) for task in tasks]

    def fail(arrays, name):
        if name == ring:
            raise error
        return newest_last(arrays, name)

    monkeypatch.setattr(newton_mixture, "newest_last", fail)
    with pytest.raises(error):
        learn_epoch(model, ["one"], learn)
    assert pack(model) == before
    monkeypatch.undo()
    learn_epoch(model, ["one"], learn)
    assert pack(model) == add(before, learn(before, ["one"]))


def test_classes_are_admitted_between_epochs():
    base = pack(KernelClassifier(LinearPA()).partial_fit(X[:300], np.where(Y[:300] > 0, "b", "d")))
    wider = kernelstream.merging.admit(base, ["a", "b"])
    model = unpack(wider)[0]
    assert model.classes_.tolist() == ["a", "b", "d"]
    assert set(model.predict(X)) == {"b", "d"}  # as before: nothing is known of the new class
    assert kernelstream.merging.admit(wider, ["d"]) == wider
    after = unpack(add(wider, [delta(wider, X[:9], ["a", "b", "d"] * 3, task="one")]))[0]
    assert after.classes_.tolist() == ["a", "b", "d"]
    told = pack(KernelClassifier(LinearPA()).partial_fit(X[:9], [1, 2, 1] * 3, classes=[1, 2]))
    with pytest.raises(MergeError, match="is not among the classes"):
        kernelstream.merging.admit(told, [3])


def test_intervals_of_a_merged_model_cover_as_those_of_one_pass():
    base = base_of(NewtonMixture(40))
    merged, _ = unpack(add(pack(base), deltas_of(pack(base), 4)))
    one = kernelstream.branch(base).partial_fit(X[FIRST:], Y[FIRST:])
    assert merged._calibration.state()["count"] == one._calibration.state()["count"] == len(X)
    fresh = np.random.default_rng(7).normal(size=(2000, 6))
    truth = (
        np.sin(fresh[:, 0])
        + 0.5 * fresh[:, 1] * fresh[:, 2]
        + 0.1 * np.random.default_rng(8).normal(size=2000)
    )
    for model in (merged, one):
        low, high = model.predict_interval(fresh, 0.9).T
        assert 0.86 < np.mean((low <= truth) & (truth <= high)) < 0.96
    few = unpack(add(pack(base), [delta(pack(base), X[:10], Y[:10], task="ten")]))[0]._calibration.state()
    before = base._calibration.state()
    assert few["count"] == before["count"] + 10
    assert np.isin(before["scores"], few["scores"]).all()  # the base's own stay as long as there is room


def test_counts_of_balanced_classes_are_summed():
    y = np.where(Y > 0.5, "rare", "usual")
    base = KernelClassifier(LinearPA(), class_weight="balanced").partial_fit(X[:FIRST], y[:FIRST])
    merged = unpack(add(pack(base), deltas_of(pack(base), 3, y)))[0]
    labels, counts = np.unique(y, return_counts=True)
    assert merged._class_counts == dict(zip(labels.tolist(), counts.tolist(), strict=True))
