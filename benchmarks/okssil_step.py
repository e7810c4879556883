"""OKS-SIL and OKL-GD: steps in log gamma beside the papers' steps in gamma and a kernel that stays, over thirty streams.

    KERNELSTREAM_DATA=... python benchmarks/okssil_step.py [--markdown FILE]

B = 100, eta = 0.2, 2,500 rows of each stream and two seeds; the features as they come, standardised, and standardised times 100.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from many_streams import STREAMS, error, standardised

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import OKLGD, OKSSIL

ROWS, SEEDS = 2500, (0, 1)
LEARNERS: dict[str, dict[str, Callable[[], Any]]] = {
    "OKS-SIL": {
        "fixed": lambda: OKSSIL(100, scale_step=0),
        "rho = 1 (paper)": lambda: OKSSIL(100, rho=1.0),
        "log gamma (default)": lambda: OKSSIL(100),
    },
    "OKL-GD": {
        "fixed": lambda: OKLGD(scale_step=0, max_size=ROWS),
        "rho = 1 (paper)": lambda: OKLGD(rho=1.0, max_size=ROWS),
        "log gamma (default)": lambda: OKLGD(max_size=ROWS),
    },
}
UNITS: dict[str, Callable[[Any], Any]] = {
    "as they come": lambda X: X,
    "standardised": standardised,
    "standardised x 100": lambda X: 100 * standardised(X),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    lines = []
    for name, variants in LEARNERS.items():
        table: dict[tuple[str, str, str], float] = {}
        for stream, (make, regression) in STREAMS.items():
            for unit, scale in UNITS.items():
                found: dict[str, list[float]] = {}
                for seed in SEEDS:
                    X, y = (part[:ROWS] for part in make(seed))
                    y = (y - y.mean()) / y.std() if regression else y
                    for variant, learner in variants.items():
                        model = (KernelRegressor if regression else KernelClassifier)(learner())
                        found.setdefault(variant, []).append(error(model, scale(X), y, regression))
                table |= {(stream, unit, variant): float(np.mean(got)) for variant, got in found.items()}
            print(name, stream, [f"{table[stream, u, v]:.1f}" for u in UNITS for v in variants], flush=True)
        heads = [f"{unit}: {variant}" for unit in UNITS for variant in variants]
        lines += [
            f"### {name}",
            "",
            "| stream | " + " | ".join(heads) + " |",
            "|---" * (len(heads) + 1) + "|",
        ]
        for stream in STREAMS:
            cells = [f"{table[stream, u, v]:.1f}" for u in UNITS for v in variants]
            lines.append(f"| {stream} | " + " | ".join(cells) + " |")
        lines += [
            "",
            "| features | variant | geometric mean of error / fixed | fewer errors | more |",
            "|---|---|---|---|---|",
        ]
        for unit in UNITS:
            for variant in list(variants)[1:]:
                logs = np.array(
                    [
                        np.log(max(table[s, unit, variant], 0.1) / max(table[s, unit, "fixed"], 0.1))
                        for s in STREAMS
                    ]
                )
                counts = int((logs < -1e-3).sum()), int((logs > 1e-3).sum())
                lines.append(
                    f"| {unit} | {variant} | {np.exp(logs.mean()):.3f} | {counts[0]} | {counts[1]} |"
                )
        lines.append("")
    print("\n".join(lines))
    if options.markdown:
        options.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
