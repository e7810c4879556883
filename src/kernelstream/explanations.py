"""Why a model said what it said: the neighbours that decided, and the log of what was rebuilt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Event", "EventLog", "Neighbours", "event_lines"]

Array = NDArray[Any]

#: Events kept; an older one leaves.
EVENTS = 64


class Neighbours(NamedTuple):
    """For each row asked about, the rows kept that decided, the nearest first; arrays of shape ``(rows, k)``.

    Attributes:
        rows: which row it was: its place in the stream, from 0 on, or after ``fit`` its place in ``X``. Rows of weight 0 are
            not counted. -1 where there are fewer than k rows.
        distances: from the row asked about; scaled features times their relevances.
        weights: in the local kernel machine, which forecasts the sum of weights times targets over all neighbours.
        targets: targets or labels.
    """

    rows: Array
    distances: Array
    weights: Array
    targets: Array


class Event(NamedTuple):
    """A memory of the default learner was rebuilt.

    Attributes:
        round: rows learnt by then.
        rebuilt: "lasting" or "recent", the memory.
        why: "beaten" (the lasting memory, by the recent one), "uncovered" (the landmarks no longer cover the rows), "more_rows"
            (twice as many rows have come since a change).
        figure: what was measured: the CUSUM of the losses; the coverage over what it was at first; the rows since the change.
        since: the round at which the change seems to have begun (beaten, more_rows), or the memory itself (uncovered).

    >>> print(Event(6040, "lasting", "beaten", 64.25, 5990))
    round 6,040: lasting memory rebuilt, beaten by the recent one since round 5,990 (CUSUM 64.2)
    """

    round: int
    rebuilt: str
    why: str
    figure: float
    since: int

    def __str__(self) -> str:
        reasons = {
            "beaten": f"beaten by the recent one since round {self.since:,} (CUSUM {self.figure:.1f})",
            "uncovered": f"its landmarks no longer cover the rows (coverage {self.figure:.2f} of what it was)",
            "more_rows": f"{self.figure:,.0f} rows since the change at round {self.since:,}",
        }
        return f"round {self.round:,}: {self.rebuilt} memory rebuilt, {reasons[self.why]}"

    def record(self) -> dict[str, Any]:
        """As JSON has it, with the sentence as its ``text``."""
        return self._asdict() | {"text": str(self)}


def event_lines(events: list[Event], most: int = 5) -> str:
    """The last events for a terminal, one per line.

    >>> print(event_lines([Event(900, "recent", "uncovered", 0.7, 100)]))
    the drift log, 1 event:
      round 900: recent memory rebuilt, its landmarks no longer cover the rows (coverage 0.70 of what it was)
    """
    title = f"the drift log, {len(events)} event{'s'[: len(events) != 1]}"
    if len(events) > most:
        title += f", the last {most}"
    return "\n".join([f"{title}:", *(f"  {event}" for event in events[-most:])])


class EventLog:
    """The last events, in constant memory.

    >>> log = EventLog(("lasting", "recent"), ("first_rows", "more_rows", "beaten", "uncovered"))
    >>> log.add(6040, "lasting", 2, 64.25, 50)
    >>> log.events
    [Event(round=6040, rebuilt='lasting', why='beaten', figure=64.25, since=5990)]
    """

    def __init__(self, memories: tuple[str, ...], reasons: tuple[str, ...]) -> None:
        self._memories, self._reasons = memories, reasons
        self._ring, self._count = np.zeros((EVENTS, 5)), 0

    def __deepcopy__(self, memo: dict[int, object]) -> EventLog:
        log = EventLog(self._memories, self._reasons)
        log._ring, log._count = self._ring.copy(), self._count
        return log

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        return self._ring.nbytes

    @property
    def events(self) -> list[Event]:
        """The events kept, the oldest first."""
        at = np.arange(max(0, self._count - EVENTS), self._count) % EVENTS
        return [
            Event(
                int(round_), self._memories[int(memory)], self._reasons[int(why)], float(figure), int(since)
            )
            for round_, memory, why, figure, since in self._ring[at]
        ]

    def add(self, round_: int, memory: str, reason: int, figure: float, rounds: int) -> None:
        """An event; ``rounds``: for how many rounds its reason has been there."""
        self._ring[self._count % EVENTS] = (
            round_,
            self._memories.index(memory),
            reason,
            figure,
            round_ - rounds,
        )
        self._count += 1

    def state(self) -> dict[str, Array]:
        """All of it, as arrays."""
        return {"events": self._ring.copy(), "events_count": np.array([self._count], np.int64)}

    def fits(self, state: dict[str, Array]) -> bool:
        """Whether a state is one of ours."""
        ring, count = state["events"], state["events_count"]
        if ring.shape != self._ring.shape or ring.dtype != np.float64 or not np.isfinite(ring).all():
            return False
        if count.dtype != np.int64 or count.shape != (1,) or not 0 <= count[0] < 2**62:
            return False
        used = ring[: min(int(count[0]), EVENTS)]
        limits = np.array([2.0**62, len(self._memories) - 1, len(self._reasons) - 1, np.inf, 2.0**62])
        whole = used[:, [0, 1, 2, 4]]
        reasons_told = (used[:, 2] > 0).all()  # the first rows are no event
        return bool(
            (whole >= 0).all()
            and (used <= limits).all()
            and (whole == np.floor(whole)).all()
            and reasons_told
        )

    def restore(self, state: dict[str, Array]) -> None:
        """What ``state`` gave, if it ``fits``."""
        self._ring, self._count = np.array(state["events"]), int(state["events_count"][0])
