"""The style of all pictures: readable on white and on dark pages, and the same in the report."""

from importlib import resources

import numpy as np
import pytest

from kernelstream_reproduce.report.style import COLOURS

WHITE, DARK = "#ffffff", "#131416"


@pytest.fixture
def style():
    pytest.importorskip("matplotlib")
    from matplotlib import rc_params_from_file

    with resources.as_file(resources.files("kernelstream") / "pictures.mplstyle") as path:
        return rc_params_from_file(path, use_default_template=False)


def luminance(colour):
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """As the guidelines for accessible web pages (WCAG) define it."""
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("page", [WHITE, DARK])
def test_ink_and_colours_stand_out_from_the_page(style, page):
    ink = {style[name] for name in style if name.endswith(("color", "edgecolor")) and style[name] != "none"}
    assert len(ink) == 1
    assert contrast(ink.pop(), page) > 4.2
    assert min(contrast(colour, page) for colour in style["axes.prop_cycle"].by_key()["color"]) > 3


def test_nothing_is_painted_behind_the_axes(style):
    assert {style[name] for name in style if name.endswith("facecolor")} == {"none"}


def test_the_report_has_the_same_colours(style):
    assert style["axes.prop_cycle"].by_key()["color"] == COLOURS
