"""The site: Sphinx with MyST, for Markdown, and the theme furo. `.ci/site` builds and checks it."""

import sys
from pathlib import Path

import kernelstream

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "kernelstream"
author = "The kernelstream developers"
copyright = author
version = release = kernelstream.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "command_help",
    "plain_docstrings",
    "light_and_dark",
]

exclude_patterns = ["_extensions"]

sphinx_gallery_conf = {  # runs examples/; an example that fails, fails the build
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",  # written there, and not part of the repository
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery.place",
    "image_scrapers": ("gallery",),
    "reset_modules": ("matplotlib", "gallery.limit_time"),
    "reset_modules_order": "both",
    "remove_config_comments": True,
    "download_all_examples": False,
    "notebook_extensions": set(),
    "write_computation_times": False,
    "show_signature": False,
    "plot_gallery": True,
}

html_theme = "furo"
html_title = f"kernelstream {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("sort.js", {"defer": "defer"})]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block"]
myst_heading_anchors = 4

autosummary_generate = False  # the pages of reference/ are written by hand, one per module
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}  # the name, not the union that it stands for
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_custom_sections = ["This differs from the paper in", "Fitted attributes"]
default_role = "code"  # `name` in a docstring

nitpicky = True
nitpick_ignore_regex = [  # other people's classes, and names that are not public
    (
        "py:.*",
        r"(numpy|np|scipy|sklearn|river|pandas|pd|polars|dask|distributed|pyspark|click|collections|typing|os)\b.*",
    ),
    (
        "py:.*",
        r"(Array|NDArray|ArrayLike|Model|kernelstream\.(_core.*|(stream|dask|spark|merging|epochs)\..*|learners\.(registry\.Class|base\.Mix)))",
    ),
]
