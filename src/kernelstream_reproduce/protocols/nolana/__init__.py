"""The NOLANA paper."""

from kernelstream_reproduce.protocols.nolana.charts import draw_charts
from kernelstream_reproduce.protocols.nolana.claims import judge_claims
from kernelstream_reproduce.protocols.nolana.experiments import TABLES, list_experiments
from kernelstream_reproduce.protocols.nolana.procedures import PROCEDURES
from kernelstream_reproduce.protocols.protocol import Protocol

__all__ = ["PROTOCOL"]

PROTOCOL = Protocol(list_experiments, PROCEDURES, TABLES, judge_claims, draw_charts)
"""How its experiments are run and shown."""
