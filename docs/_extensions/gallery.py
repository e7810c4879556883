"""The examples' pictures, their order, and a limit of time for each."""

from __future__ import annotations

import signal
from typing import Any

LIMIT = 60
"""Seconds of processor time that an example may take; the longest takes some 20."""

ORDER = [
    "decision_surface",
    "electricity_drift",
    "spam_filter",
    "fraud",
    "intervals",
    "one_model_per_device",
    "bandwidths",
    "sketches",
    "regret",
    "own_learner",
]


def place(filename: str) -> int:
    """Where an example stands on the page; it has to be named in `ORDER`."""
    return ORDER.index(filename.removesuffix(".py"))


def limit_time(gallery_conf: dict[str, Any], fname: str, when: str) -> None:
    """Let an example end with an error when it has used its time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"{fname} took more than {LIMIT} s of processor time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LIMIT if when == "before" else 0)


def _get_sg_image_scraper() -> Any:
    return scrape


def scrape(block: tuple[Any, ...], block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Figures as SVG, animations as GIF: neither needs a script, let alone one from elsewhere."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import Animation
    from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

    made = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Animation) and plt.fignum_exists(value._fig.number):
            path = str(next(block_vars["image_path_iterator"])).removesuffix("png") + "gif"
            value.save(path, writer="pillow", dpi=90)
            plt.close(value._fig)
            made.append(path)
    moving = figure_rst(made, gallery_conf["src_dir"]) if made else ""
    return moving + str(matplotlib_scraper(block, block_vars, gallery_conf, format="svg"))
