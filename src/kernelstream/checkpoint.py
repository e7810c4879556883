"""Checkpoints: a model and the position of its stream in one file, so that a killed run continues where it was."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Self

from kernelstream.errors import CheckpointError, ModelFileError
from kernelstream.files import is_model_file, write_atomically
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
        import filelock

        self.folder = Path(folder)
        # Not bound to a thread, so that any thread may close the checkpoint.
        self._lock = filelock.FileLock(self.folder / "lock", timeout=0, thread_local=False)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._check_folder()
            self._lock.acquire()
        except filelock.Timeout:
            raise CheckpointError(
                f"{self.folder} is in use by another run: wait for it, or give another folder"
            ) from None
        except OSError as error:
            raise OSError(
                error.errno, f"cannot write in the checkpoint folder: {error.strerror}", str(self.folder)
            ) from None
        for path in self.folder.iterdir():  # what a run left that was killed while it wrote
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)

    def _check_folder(self) -> None:
        """Refuse a folder in which names of ours belong to something else."""
        lock = self.folder / "lock"
        if os.path.lexists(lock) and (lock.is_symlink() or not lock.is_file() or lock.stat().st_size):
            raise CheckpointError(
                f"{lock} is not of a checkpoint: give another folder, or delete that file if it is"
            )
        states = [path for path in self._files() if path.stat().st_size]
        if states and not any(
            map(is_model_file, states)
        ):  # one that is damaged may stand beside one that is whole
            raise CheckpointError(f"{states[-1]} is not of a checkpoint: give another folder")

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
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _files(self) -> list[Path]:
        """The states, oldest first."""
        return sorted(
            path for path in self.folder.iterdir() if _STATE.fullmatch(path.name) and path.is_file()
        )
