"""Nested parameters of a part that was not given: ``KernelClassifier().set_params(learner__budget=50)``."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

__all__ = ["DefaultParts"]


class DefaultParts(BaseEstimator):
    """An estimator whose parts (a learner, a kernel) may be None or a name, and still have parameters to read and to set.

    >>> class Kernel(BaseEstimator):
    ...     def __init__(self, gamma=1.0):
    ...         self.gamma = gamma
    >>> class Learner(DefaultParts):
    ...     def __init__(self, kernel=None):
    ...         self.kernel = kernel
    ...
    ...     def _default_part(self, name):
    ...         return Kernel() if name == "kernel" and self.kernel is None else None
    >>> Learner().get_params()
    {'kernel': None, 'kernel__gamma': 1.0}
    >>> Learner().set_params(kernel__gamma=2.0)
    Learner(kernel=Kernel(gamma=2.0))
    """

    def _default_part(self, name: str) -> BaseEstimator | None:
        """What stands in the place of a parameter that is None or a name; None if nothing does."""
        return None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` also those of parts, given or not."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for name in self._get_param_names():
                part = None if hasattr(params[name], "get_params") else self._default_part(name)
                if part is not None:
                    params |= {f"{name}__{key}": value for key, value in part.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; one of a part that was not given puts that part there first."""
        plain = {key: value for key, value in params.items() if "__" not in key}
        nested = {key: value for key, value in params.items() if "__" in key}
        super().set_params(**plain)
        own = self._get_param_names()
        for name in dict.fromkeys(key.partition("__")[0] for key in nested):
            if name in own and not hasattr(getattr(self, name), "set_params"):
                part = self._default_part(name)
                if part is not None:
                    part.set_params(
                        **{
                            key.partition("__")[2]: v
                            for key, v in nested.items()
                            if key.startswith(f"{name}__")
                        }
                    )  # raises before anything has changed
                    setattr(self, name, part)
        super().set_params(**nested)
        return self
