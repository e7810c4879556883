"""An example that fails, and one that takes too long, fail the build of the site."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx_gallery", reason="the site's tools are not installed")

DOCS = Path(__file__).parent.parent / "docs"

CONF = """
import sys
sys.path.insert(0, {extensions!r})
import gallery
gallery.LIMIT = 0.3
source = open({conf!r}).read().replace("__file__", repr({conf!r}))
exec(source)
extensions = ["sphinx_gallery.gen_gallery"]
sphinx_gallery_conf["examples_dirs"] = "../examples"
html_theme, html_static_path, html_css_files, html_js_files, html_theme_options = "basic", [], [], [], {{}}
"""

EXAMPLES = {
    "fraud": "print('fine')",
    "intervals": "raise ValueError('a broken example')",
    "regret": "while True:\n    pass",
}


def test_a_broken_and_a_slow_example_fail_the_build(tmp_path: Path) -> None:
    docs, examples = tmp_path / "docs", tmp_path / "examples"
    docs.mkdir()
    examples.mkdir()
    conf = CONF.format(extensions=str(DOCS / "_extensions"), conf=str(DOCS / "conf.py"))
    (docs / "conf.py").write_text(conf)
    (docs / "index.rst").write_text("Site\n====\n\n.. toctree::\n\n   examples/index\n")
    (examples / "README.rst").write_text("Examples\n========\n")
    for name, body in EXAMPLES.items():
        (examples / f"{name}.py").write_text(f'"""\n{name}\n{"=" * len(name)}\n\nText.\n"""\n\n{body}\n')
    options = ["--fail-on-warning", "--quiet", str(docs), str(tmp_path / "site")]
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options], capture_output=True, text=True, timeout=100
    )
    assert built.returncode != 0
    assert "a broken example" in built.stderr
    assert "more than 0.3 s of processor time" in built.stderr
    assert "fraud.py" not in built.stderr
