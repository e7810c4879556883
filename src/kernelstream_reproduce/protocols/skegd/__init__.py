"""The SkeGD paper."""

from kernelstream_reproduce.protocols.protocol import Protocol
from kernelstream_reproduce.protocols.skegd.charts import draw_charts
from kernelstream_reproduce.protocols.skegd.claims import judge_claims
from kernelstream_reproduce.protocols.skegd.experiments import TABLES, list_experiments
from kernelstream_reproduce.protocols.skegd.procedures import PROCEDURES

__all__ = ["PROTOCOL"]

PROTOCOL = Protocol(list_experiments, PROCEDURES, TABLES, judge_claims, draw_charts)
"""How its experiments are run and shown."""
