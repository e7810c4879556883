"""Checkpoints: a model and the position of its stream in one file, so that a killed run continues where it was."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from kernelstream.errors import CheckpointError, ModelFileError
from kernelstream.files import write_atomically
from kernelstream.persistence import Model, pack, unpack

__all__ = ["Checkpoint", "Saved", "is_own_name"]

_KEPT = 2  # should the newest be damaged, there is another
_STATE = re.compile(r"\d{12}\.safetensors")
_TEMPORARY = re.compile(
    r"(\d{12}\.safetensors|begin\.json)\.[0-9a-f]{8}\.tmp"
)  # as `write_atomically` names them


def is_own_name(name: str) -> bool:
    """Whether checkpoints have files of this name in their folder.

    >>> is_own_name("000000000001.safetensors"), is_own_name("model.safetensors")
    (True, False)
    """
    return name in ("lock", "begin.json") or bool(_STATE.fullmatch(name) or _TEMPORARY.fullmatch(name))


class Saved(NamedTuple):
    """What a checkpoint holds: the model, the position of its source, and the record kept with them."""

    model: Model
    position: Any
    record: dict[str, Any]


class Checkpoint:
    """A folder with the newest states of one run. No other run can use it at the same time.

    Saving is atomic, and a position is saved together with the model that has learnt everything before it. So a consumer of a
    message broker that delivers at least once has every message count exactly once: it stores the offset here, and after a
    restart asks the broker for what comes after it. docs/streaming.md shows it.

    Other files in the folder are left alone. A folder in which something else has the name of one of our files is refused.

    Args:
        folder: created if it does not exist.

    >>> import tempfile
    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with tempfile.TemporaryDirectory() as folder, Checkpoint(folder) as checkpoint:
    ...     print(checkpoint.load())
    ...     checkpoint.save(model, position={"offset": 2})
    ...     checkpoint.load().position
    None
    {'offset': 2}
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_folder()
            self._lock: IO[str] | None = open(self.folder / "lock", "a+")
        except OSError as error:
            raise OSError(
                error.errno, f"cannot write in the checkpoint folder: {error.strerror}", str(self.folder)
            ) from None
        try:
            _lock(self._lock)
        except OSError:
            self.close()
            raise CheckpointError(
                f"{self.folder} is in use by another run: wait for it, or give another folder"
            ) from None
        for path in self.folder.iterdir():  # what a run left that was killed while it wrote
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)

    def _check_folder(self) -> None:
        """Refuse a folder in which a name of ours belongs to something else: an empty file `lock` comes first."""
        lock = self.folder / "lock"
        names = [
            path.name for path in self.folder.iterdir() if path.name != "lock" and is_own_name(path.name)
        ]
        if os.path.lexists(lock):
            if lock.is_symlink() or not lock.is_file() or lock.stat().st_size:
                raise CheckpointError(f"{lock} is not of a checkpoint: give another folder")
        elif names and any(not _TEMPORARY.fullmatch(name) for name in names):
            raise CheckpointError(
                f"{self.folder / min(names)} is not of a checkpoint, for there is no file {lock}: give another folder, "
                "or create that file, empty, if it is"
            )

    def begin(self, record: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Keep a record of how the run began, unless there is one; the record that is kept, or None."""
        path = self.folder / "begin.json"
        if not path.exists() and record is not None:
            write_atomically(path, json.dumps(record).encode())
        try:
            kept: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
        except ValueError as error:
            raise CheckpointError(f"{path} is damaged ({error}): delete the folder to start again") from None
        return kept

    def save(self, model: Model, position: Any = None, **record: Any) -> None:
        """Keep a model with the position of its source and anything else that JSON can hold; the state before is kept, too."""
        kept = self._files()
        number = int(kept[-1].stem) + 1 if kept else 1
        data = pack(model, {"position": position, "record": record})
        write_atomically(self.folder / f"{number:012d}.safetensors", data)
        for old in kept[: 1 - _KEPT]:
            old.unlink(missing_ok=True)

    def load(self) -> Saved | None:
        """The newest state that is whole; None if nothing has been saved."""
        first: ModelFileError | None = None
        for path in reversed(self._files()):
            try:
                model, note = unpack(path.read_bytes(), str(path))
                return Saved(model, note["position"], note["record"])
            except ModelFileError as error:
                first = first or error
        if first is not None:
            raise CheckpointError(
                f"no checkpoint in {self.folder} is whole: {first}; delete the folder to start again"
            )
        return None

    def close(self) -> None:
        """Let other runs use the folder."""
        if self._lock is not None:
            self._lock.close()  # which unlocks it
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _files(self) -> list[Path]:
        """The states, oldest first."""
        return sorted(
            path for path in self.folder.iterdir() if _STATE.fullmatch(path.name) and path.is_file()
        )


def _lock(file: IO[str]) -> None:
    """Lock a file for this process, as long as it is open; ``OSError`` if another process has it."""
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    with contextlib.suppress(ImportError):
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
