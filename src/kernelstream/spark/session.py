"""A Spark session on this machine, and what is needed for one."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from typing import Any

from kernelstream.validate import check_integer

__all__ = ["local_session", "pyspark_module"]


def pyspark_module(module: str = "") -> Any:
    """A module of pyspark, which not everybody has."""
    try:
        return importlib.import_module("pyspark" + module)
    except ImportError as error:
        raise ImportError(f'Spark is needed: pip install "kernelstream[spark]" ({error})') from None


def local_session(workers: int | None = None, **settings: Any) -> Any:
    """A Spark session on this machine; the one at work, if there is one.

    Args:
        workers: how many tasks run at once; by default one per core.
        settings: of Spark, with ``_`` for the dots in their names: ``spark_driver_memory="4g"``.

    >>> spark = local_session(1)
    >>> spark.range(3).count()
    3
    """
    sql = pyspark_module(".sql")
    if sql.SparkSession.getActiveSession() is None:
        _check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else the first python3 on the path
    cores = "*" if workers is None else check_integer("workers", workers, low=1)
    builder = sql.SparkSession.builder.master(
        f"local[{cores},4]"
    )  # a task may fail four times, as on a cluster
    plain = {"spark_ui_enabled": "false", "spark_ui_showConsoleProgress": "false", "spark_log_level": "ERROR"}
    plain["spark_driver_host"] = "127.0.0.1"
    for name, value in (plain | settings).items():
        builder = builder.config(name.replace("_", "."), str(value))
    return builder.getOrCreate()


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    # macOS has a java that only says that there is none
    if java is None or subprocess.run([java, "-version"], capture_output=True).returncode:
        where = f" in JAVA_HOME, {home}" if home else ""
        raise RuntimeError(
            f"Spark needs Java 17 or later, and there is none{where}: install it (Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless; macOS: brew install openjdk@17; Windows: winget install Microsoft.OpenJDK.17) and let "
            "JAVA_HOME name its folder"
        )
