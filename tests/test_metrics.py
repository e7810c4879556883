"""The stream's metrics are scikit-learn's over the same rows, whatever the chunks."""

import numpy as np
import pytest
from sklearn import metrics as sk

from kernelstream.metrics import Baseline, ClassificationMetrics, Evaluation, RegressionMetrics

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def classified(classes, n=700, seed=0, imbalance=0.0):
    rng = np.random.default_rng(seed)
    shares = np.ones(len(classes))
    shares[1:] -= imbalance
    y = rng.choice(classes, n, p=shares / shares.sum())
    p = rng.dirichlet(np.ones(len(classes)), n)
    truth = (y[:, None] == np.array(classes)) * rng.uniform(0, 1, (n, 1))
    p = (p + truth) / (p + truth).sum(axis=1, keepdims=True)
    return y, np.array(classes)[p.argmax(axis=1)], p


def by_scikit_learn(y, predicted, p, classes, rows=slice(None)):
    y, predicted, p = y[rows], predicted[rows], p[rows]
    average = {"average": "binary", "pos_label": classes[1]} if len(classes) == 2 else {"average": "macro"}
    figures = {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
        "precision": sk.precision_score(y, predicted, zero_division=0, **average),
        "recall": sk.recall_score(y, predicted, zero_division=0, **average),
        "f1": sk.f1_score(y, predicted, zero_division=0, **average),
        "kappa": sk.cohen_kappa_score(y, predicted),
        "mcc": sk.matthews_corrcoef(y, predicted),
        "log_loss": sk.log_loss(y, p, labels=classes),
    }
    if len(classes) == 2:
        figures["brier"] = sk.brier_score_loss(y, p[:, 1], pos_label=classes[1])
        figures["roc_auc"] = sk.roc_auc_score(y == classes[1], p[:, 1])
        figures["average_precision"] = sk.average_precision_score(y == classes[1], p[:, 1])
    else:
        truth = y[:, None] == np.array(classes)
        figures["brier"] = float(np.mean(((p - truth) ** 2).sum(axis=1)))
        figures["roc_auc"] = sk.roc_auc_score(y, p, multi_class="ovr", labels=classes)
        figures["average_precision"] = sk.average_precision_score(truth, p)
    return figures


@pytest.mark.parametrize("chunk", [1, 13, 700])
@pytest.mark.parametrize(
    ("classes", "imbalance"), [([0, 1], 0.0), (["no", "yes"], 0.97), ([1, 2, 5, 9], 0.8)]
)
def test_classification_figures_are_scikit_learns(classes, imbalance, chunk):
    y, predicted, p = classified(classes, imbalance=imbalance)
    metrics = ClassificationMetrics(window=len(y))
    for i in range(0, len(y), chunk):
        part = slice(i, i + chunk)
        metrics.update(y[part], predicted[part], p[part], classes)
    expected = by_scikit_learn(y, predicted, p, classes)
    assert set(expected) == set(ClassificationMetrics.names) == set(metrics.figures())
    for name, value in metrics.figures().items():
        np.testing.assert_allclose(value, expected[name], err_msg=name, **CLOSE)
    assert metrics.confusion()[1] == sk.confusion_matrix(y, predicted, labels=classes).tolist()


def test_the_window_has_the_last_rows():
    y, predicted, p = classified([0, 1])
    metrics = ClassificationMetrics(window=100)
    for i in range(0, len(y), 30):
        metrics.update(y[i : i + 30], predicted[i : i + 30], p[i : i + 30], [0, 1])
    expected = by_scikit_learn(y, predicted, p, [0, 1], slice(-100, None))
    for name, value in metrics.recent().items():
        np.testing.assert_allclose(value, expected[name], err_msg=name, **CLOSE)
    assert metrics.figures()["roc_auc"] == metrics.recent()["roc_auc"]
    assert metrics.figures()["accuracy"] != metrics.recent()["accuracy"]


def test_figures_do_not_depend_on_chunks_to_the_bit():
    y, predicted, p = classified([0, 1, 2])
    whole, singly = ClassificationMetrics(50), ClassificationMetrics(50)
    whole.update(y, predicted, p, [0, 1, 2])
    for i in range(len(y)):
        singly.update(y[i : i + 1], predicted[i : i + 1], p[i : i + 1], [0, 1, 2])
    assert whole.figures() == singly.figures()
    assert whole.recent() == singly.recent()
    assert whole.state() == singly.state()


def test_a_missing_prediction_is_a_mistake():
    metrics = ClassificationMetrics()
    metrics.update(np.array([1.0, 1.0, 0.0]), np.array([np.nan, 1.0, 0.0]))
    figures = metrics.figures()
    assert figures["accuracy"] == pytest.approx(2 / 3)
    assert figures["recall"] == 0.5
    assert figures["precision"] == 1.0
    assert np.isnan(figures["log_loss"])


def test_the_positive_class_can_be_named():
    metrics = ClassificationMetrics(positive="fraud")
    metrics.update(["ok", "fraud", "ok"], ["ok", "ok", "ok"])
    assert metrics.figures()["recall"] == 0.0
    assert ClassificationMetrics().figures()["accuracy"] != metrics.figures()["accuracy"]


def test_a_label_unknown_when_predicted_had_no_probability():
    metrics = ClassificationMetrics()
    metrics.update([0, 0, 1], [0, 0, 0], np.ones((3, 1)), [0])
    assert metrics.figures()["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps) / 3)


@pytest.mark.parametrize("chunk", [1, 13, 500])
def test_regression_figures_are_scikit_learns(chunk):
    rng = np.random.default_rng(0)
    y = rng.normal(1000, 3, 500)
    predicted = y + rng.normal(0, 1, 500)
    metrics = RegressionMetrics(window=100, quantile=0.9)
    for i in range(0, 500, chunk):
        metrics.update(y[i : i + chunk], predicted[i : i + chunk])
    for figures, rows in ((metrics.figures(), slice(None)), (metrics.recent(), slice(-100, None))):
        given = y[rows], predicted[rows]
        np.testing.assert_allclose(figures["mae"], sk.mean_absolute_error(*given), **CLOSE)
        np.testing.assert_allclose(figures["rmse"], sk.root_mean_squared_error(*given), **CLOSE)
        np.testing.assert_allclose(figures["r2"], sk.r2_score(*given), **CLOSE)
        np.testing.assert_allclose(figures["pinball"], sk.mean_pinball_loss(*given, alpha=0.9), **CLOSE)


def test_baselines_are_the_obvious_ones():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 60)
    majority = Baseline("majority").predict_then_learn(None, y)
    for i in range(1, 60):
        labels, counts = np.unique(y[:i], return_counts=True)
        assert majority[i] in labels[counts == counts.max()]
    assert Baseline("last").predict_then_learn(None, y) == [None, *y[:-1].tolist()]
    targets = rng.normal(size=50)
    means = Baseline("mean").predict_then_learn(None, targets)
    np.testing.assert_allclose(means[1:], [targets[:i].mean() for i in range(1, 50)], rtol=1e-12)
    with pytest.raises(ValueError, match="kind must be one of"):
        Baseline("median")


@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_the_majority_changes_only_when_it_is_overtaken(chunk):
    """Whatever the chunks and the state between them. All labels have the same count after every fourth row."""
    rng = np.random.default_rng(1)
    y = [label for _ in range(100) for label in rng.permutation(["a", "b", "c", "d"]).tolist()]
    expected, counts, best = [], {}, None
    for label in y:
        expected.append(best)
        counts[label] = counts.get(label, 0) + 1
        if counts[label] > counts.get(best, 0):
            best = label
    assert len({*expected}) == 5
    baseline, predicted = Baseline("majority"), []
    for i in range(0, 400, chunk):
        baseline = Baseline.from_state(baseline.state())
        predicted += baseline.predict_then_learn(None, y[i : i + chunk])
    assert predicted == expected
    assert baseline.state() == {
        "kind": "majority", "counts": [[x, counts[x]] for x in counts], "next": best, "rows": 400,
    }  # fmt: skip


def test_scores_serve_for_the_areas():
    """A learner without probabilities has areas all the same; a class that came later had the smallest score."""
    rng = np.random.default_rng(0)
    y, scores = rng.integers(2, size=300), rng.normal(size=300)
    metrics = ClassificationMetrics(window=300)
    both = np.column_stack([-scores, scores])
    for i in range(0, 300, 7):
        metrics.update(
            y[i : i + 7], (scores > 0).astype(int)[i : i + 7], None, [0, 1], scores=both[i : i + 7]
        )
    figures = metrics.figures()
    np.testing.assert_allclose(figures["roc_auc"], sk.roc_auc_score(y, scores), **CLOSE)
    np.testing.assert_allclose(figures["average_precision"], sk.average_precision_score(y, scores), **CLOSE)
    assert np.isnan(figures["log_loss"])
    metrics.update([2], [0], None, [0, 1], scores=[[0.5, -0.5]])
    metrics.update([2, 0], [2, 0], None, [0, 1, 2], scores=[[0.0, 0.0, 1.0], [1.0, 0.0, -1.0]])
    assert metrics._scores[50, 2] == min(both[50])
    assert np.isfinite(metrics.figures()["roc_auc"])


def test_a_window_without_the_rare_class_is_not_praised():
    metrics = ClassificationMetrics(window=10)
    metrics.update([0, 1] + [0] * 20, [0, 0] + [0] * 20)
    assert metrics.recent()["accuracy"] == 1.0
    assert metrics.recent()["precision"] == metrics.recent()["recall"] == metrics.recent()["f1"] == 0.0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_an_evaluation_goes_on_from_its_state(task):
    import json

    y, predicted, p = classified(["a", "b", "c"], n=450)
    scored = (p, ["a", "b", "c"], None)
    if task == "regression":
        y, predicted, scored = p[:, 0], p[:, 1], ()

    def part(rows):
        return [x[rows] if isinstance(x, np.ndarray) else x for x in scored]

    name = "f1" if task == "classification" else "r2"
    whole, first = Evaluation(task, 50, [name]), Evaluation(task, 50, [name])
    whole.update(y, predicted, *scored)
    first.update(y[:170], predicted[:170], *part(slice(0, 170)))
    again = Evaluation.from_state(json.loads(json.dumps(first.state(), allow_nan=False)))
    again.update(y[170:], predicted[170:], *part(slice(170, None)))
    assert again.record() == whole.record()
    assert again.curve(name) == whole.curve(name)
    assert whole.curve(name)[0] == [100, 200, 300, 400, 450]


def test_a_curve_is_bounded(monkeypatch):
    monkeypatch.setattr("kernelstream.metrics.CURVE_POINTS", 10)
    evaluation = Evaluation("regression", 50, ["mae"])
    y = np.arange(5000.0)
    evaluation.update(y, y + 1)
    rows, whole, recent = evaluation.curve("mae")
    assert 5 <= len(rows) <= 11
    assert rows[-1] == 5000
    assert whole == recent == [1.0] * len(rows)
