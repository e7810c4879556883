"""Checks a source distribution: it has every file of the repository that building, testing and reading need, and no other.

python .ci/check_sdist.py dist/kernelstream-X.tar.gz
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import PurePosixPath

LEFT_OUT = (".ci/", ".github/")
ADDED = {"PKG-INFO"}


def main(path: str) -> None:
    """Print what is missing or too much; an exit code of 1 if there is any."""
    with tarfile.open(path) as archive:
        files = [member.name for member in archive.getmembers() if member.isfile()]
    inside = {PurePosixPath(*PurePosixPath(name).parts[1:]).as_posix() for name in files}
    known = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    wanted = {name for name in known if not name.startswith(LEFT_OUT)}
    missing, more = sorted(wanted - inside), sorted(inside - wanted - ADDED)
    for name in missing:
        print(f"not in {path}: {name}")
    for name in more:
        print(f"in {path}, but not in the repository: {name}")
    print(f"{path}: {len(inside)} files")
    sys.exit(bool(missing or more))


if __name__ == "__main__":
    main(sys.argv[1])
