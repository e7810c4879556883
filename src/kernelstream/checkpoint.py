"""Checkpoints: a model and where its stream stood, in one file, so that a killed run continues with the same result."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple, Self

from kernelstream.errors import CheckpointError, ModelFileError
from kernelstream.files import write_atomically
from kernelstream.persistence import Model, pack, unpack

__all__ = ["Checkpoint", "Saved"]

_KEPT = 2  # should the disk spoil the newest, there is another


class Saved(NamedTuple):
    """What a checkpoint holds: the model, the position of its source, and whatever else was kept with them."""

    model: Model
    position: Any
    record: dict[str, Any]


class Checkpoint:
    """A folder with the newest states of one run, which holds it alone.

    Saving is atomic, and a position is saved together with the model that has learnt everything before it. So a consumer of a
    message broker that delivers at least once has every message count exactly once: it stores the offset here, and after a
    restart asks the broker for what comes after it. docs/streaming.md shows it.

    Args:
        folder: made if it is not there.

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
            self._lock.acquire()
        except filelock.Timeout:
            raise CheckpointError(
                f"{self.folder} is in use by another run: wait for it, or give another folder"
            ) from None
        except OSError as error:
            raise OSError(
                error.errno, f"cannot write in the checkpoint folder: {error.strerror}", str(self.folder)
            ) from None
        for left in self.folder.glob("*.tmp"):  # of a run killed while it wrote
            left.unlink(missing_ok=True)

    def begin(self, record: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Keep what was so when the run began, if nothing is kept yet; what is kept (None: nothing is, and none was given)."""
        path = self.folder / "begin.json"
        if not path.exists() and record is not None:
            write_atomically(path, json.dumps(record).encode())
        try:
            kept: dict[str, Any] | None = json.loads(path.read_bytes()) if path.exists() else None
        except ValueError as error:
            raise CheckpointError(f"{path} is damaged ({error}): delete the folder to start again") from None
        return kept

    def save(self, model: Model, position: Any = None, **record: Any) -> None:
        """Keep a model with the position of its source and more that JSON can hold; older states but one are removed."""
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
        """Let others have the folder."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _files(self) -> list[Path]:
        """The states, oldest first."""
        return sorted(p for p in self.folder.iterdir() if re.fullmatch(r"\d{12}\.safetensors", p.name))
