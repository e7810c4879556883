"""The OKS-SIL paper."""

from kernelstream_reproduce.protocols.okssil.charts import draw_charts
from kernelstream_reproduce.protocols.okssil.claims import judge_claims
from kernelstream_reproduce.protocols.okssil.experiments import TABLES, list_experiments
from kernelstream_reproduce.protocols.okssil.procedures import PROCEDURES
from kernelstream_reproduce.protocols.protocol import Protocol

__all__ = ["PROTOCOL"]

PROTOCOL = Protocol(list_experiments, PROCEDURES, TABLES, judge_claims, draw_charts)
"""How its experiments are run and shown."""
