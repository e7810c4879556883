"""Tables and streams larger than one machine, on Apache Spark: workers learn parts, and what they learnt is added up.

``fit`` learns a DataFrame of any size in one pass, in *epochs*: in each, some parts go on from the same base at once, and their
deltas are added to it (`kernelstream.merging`). ``StreamLearner`` does so with the batches of Structured Streaming, which
count once whatever is killed. ``predict`` and ``predict_udf`` answer rows; ``fit_per_key`` and ``learn_per_key`` have a model
per key. Only models and deltas come to the driver, never rows.

Needs ``pip install "kernelstream[spark]"`` and Java 17 or later. docs/spark.md has complete examples.
"""

from __future__ import annotations

from kernelstream.merging import Progress
from kernelstream.spark.keys import fit_per_key, learn_per_key, predict_per_key
from kernelstream.spark.predictions import predict, predict_udf
from kernelstream.spark.session import local_session
from kernelstream.spark.streams import StreamLearner
from kernelstream.spark.tables import fit

__all__ = [
    "Progress",
    "StreamLearner",
    "fit",
    "fit_per_key",
    "learn_per_key",
    "local_session",
    "predict",
    "predict_per_key",
    "predict_udf",
]
