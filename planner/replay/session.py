"""A local Spark session that needs no set-up."""

import os
import sys
from typing import TYPE_CHECKING

from planner.model.errors import ReplayError
from planner.replay.java import JavaRuntime, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session"]


def local_session(name: str, cores: int | None = None, java: JavaRuntime | None = None) -> "SparkSession":
    """Start Spark in this process, on the loopback address alone.

    Args:
        name: What Spark calls the application.
        cores: How many cores it may use; all by default.
        java: The Java to run on; the one found on this machine by default.

    Raises:
        ReplayError: There is no Java, or Spark does not start.
    """
    runtime = java or find_java()
    os.environ["JAVA_HOME"] = str(runtime.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    from pyspark.sql import SparkSession  # noqa: PLC0415 - takes a second to import

    try:
        return (
            SparkSession.builder.master(f"local[{cores or '*'}]")
            .appName(name)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .getOrCreate()
        )
    except Exception as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ReplayError(
            f"Spark does not start on {runtime.source} (Java {runtime.version}): {reason}.",
            remedy="Set JAVA_HOME to a Java 17 or newer.",
        ) from error
