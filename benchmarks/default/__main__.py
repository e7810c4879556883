"""The default learner beside the papers' best rows, all our learners, and what a user would pick instead.

Every round counts: predict a row, then learn it. Streams are shuffled by seed, except those whose order is the point. Each run is
one line of the results file; a run that is stored already with the same settings is not repeated (--again repeats it).

    KERNELSTREAM_DATA=... python benchmarks/default [--streams NAME ...] [--contenders NAME ...] [--seeds 0 1 2 3 4]
        [--results FILE] [--markdown FILE] [--render-only] [--again]

The peers need `pip install river vowpalwabbit`; without one of them its runs are left out and the rest goes on.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from pathlib import Path

from contenders import CONTENDERS
from page import page
from running import read, run_all
from streams import SEEDS, STREAMS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", nargs="+", choices=STREAMS, default=list(STREAMS), metavar="NAME")
    parser.add_argument(
        "--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), metavar="NAME"
    )
    parser.add_argument("--seeds", nargs="+", type=int, choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--results", type=Path, default=Path("docs/results/default.jsonl"))
    parser.add_argument("--markdown", type=Path, default=Path("docs/results/default.md"))
    parser.add_argument("--render-only", action="store_true", help="make the page from the stored runs")
    parser.add_argument("--again", action="store_true", help="repeat runs that are stored")
    options = parser.parse_args()
    if not options.render_only:
        run_all(options)
    options.markdown.write_text(page(read(options.results)))


if __name__ == "__main__":
    main()
