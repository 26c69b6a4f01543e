"""A Spark session for the command line: embedded, or on a cluster by the name of its master.

What Spark and its Python workers write to standard error goes to a log file, of which a run speaks when it fails: on a
normal run there is nothing in it that a user could act upon. Every setting here gives way to `spark-defaults.conf` and
to `--conf`.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltastar.errors import SourceError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG4J = Path(__file__).with_name("log4j2.properties")
EMBEDDED = "local[*]"
LEAST_JAVA = 17

_ATTEMPTS = 4
_UNITS = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DEFAULTS = {
    "spark.app.name": "deltastar",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",  # it would stop behind every shuffle, to plan what is planned
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
_LOCAL_DEFAULTS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.shuffle.compress": "false",  # what is shuffled stays on this machine
    "spark.driver.memory": "2g",
}
_LOCAL_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
"""Starts a third sooner. The JVM moves packed bytes here; what takes long happens in Python workers."""


def check_installed() -> None:
    """Raises `UsageError` where pyspark or Java is missing, with what to do."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise UsageError(
            "Spark is not installed; install it with: pip install 'deltastar[spark]', or use --engine inline"
        )
    if find_java() is None:
        raise UsageError(
            f"Spark needs Java {LEAST_JAVA} or newer, and there is no `java` on the PATH and no JAVA_HOME; "
            "on Debian, as root: apt-get install default-jre-headless (or use --engine inline)"
        )


def find_java() -> str | None:
    """The `java` that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which(os.path.join(home, "bin", "java"))
    return shutil.which("java")


class Session:
    """A session, and the log of what Spark says. A context manager: leaving it stops Spark."""

    def __init__(self, master: str | None, settings: Sequence[str], debug: bool, note: Callable[[str], None]) -> None:
        check_installed()
        self.master = _with_attempts(master or EMBEDDED)
        self.is_local = self.master.startswith("local[")
        handle, self.log = tempfile.mkstemp(prefix="deltastar-spark-", suffix=".log")
        self._is_kept = False
        note("starting Spark" + (f" on {master}" if master else ""))
        try:
            with os.fdopen(handle, "wb") as log:
                self.spark = self._start(self._settings(parsed_settings(settings)), None if debug else log)
        except BaseException:
            self._remove_log()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops Spark and its workers."""
        gateway: Any = self.spark.sparkContext._gateway
        try:
            self.spark.stop()
        finally:
            gateway.shutdown()
            process = gateway.proc
            if process is not None:
                process.stdin.close()
                process.wait()
            _forget_gateway()
            if not self._is_kept:
                self._remove_log()

    def keep_log(self) -> str:
        """The log's path: it is needed after the end."""
        self._is_kept = True
        return self.log

    @property
    def cores(self) -> int:
        """How many tasks run side by side."""
        return max(int(self.spark.sparkContext.defaultParallelism), 1)

    @property
    def application(self) -> str:
        """What Spark calls this session."""
        return str(self.spark.sparkContext.applicationId)

    def _remove_log(self) -> None:
        Path(self.log).unlink(missing_ok=True)

    def _settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        settings = dict(_DEFAULTS)
        java = f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"
        if self.is_local:
            settings |= _LOCAL_DEFAULTS
            java = f"{_LOCAL_JAVA} {java}"
        settings |= defaults_file()
        settings |= chosen
        if _JAVA_OPTIONS in settings:
            java = f"{java} {settings[_JAVA_OPTIONS]}"
        return {**settings, _JAVA_OPTIONS: java, "spark.master": self.master}

    def _start(self, settings: Mapping[str, str], log: Any) -> SparkSession:
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        if log is not None:  # py4j logs every exception that a callback raises, and so would say it twice
            logging.getLogger("py4j").setLevel(logging.CRITICAL)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1") if self.is_local else None
        if SparkContext._active_spark_context is not None:
            raise UsageError("this process has a Spark already, and a run needs one of its own; stop it first")
        _forget_gateway()
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf, {"stdout": log, "stderr": log} if log else {}
            )
        except PySparkRuntimeError:
            raise SourceError(f"Spark did not start: {self._why()}") from None
        context = SparkContext(conf=conf, gateway=gateway)
        return SparkSession(context)

    def _why(self) -> str:
        """What can be told of a JVM that ended at once."""
        java = find_java()
        version = subprocess.run([java or "java", "-version"], capture_output=True, text=True).stderr
        found = re.search(r'version "(\d+)', version)
        if found and int(found[1]) < LEAST_JAVA:
            return f"{java} is Java {found[1]}, and Spark needs {LEAST_JAVA} or newer; set JAVA_HOME to one"
        lines = [line for line in Path(self.log).read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing; --debug shows more"


def parsed_settings(settings: Sequence[str]) -> dict[str, str]:
    """`--conf KEY=VALUE` as a dictionary.

    >>> parsed_settings(["spark.driver.memory=4g"])
    {'spark.driver.memory': '4g'}
    """
    pairs = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise UsageError(f"--conf {setting}: a setting of Spark is written spark.NAME=VALUE")
        pairs[key] = value
    return pairs


def parsed_size(name: str, text: str) -> int:
    """A number of bytes, as Spark's options write it.

    >>> parsed_size("maxBytesPerTrigger", "16m"), parsed_size("maxBytesPerTrigger", "1024")
    (16777216, 1024)
    """
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS or int(match[1]) == 0:
        raise UsageError(f"{name}={text!r}: give a number of bytes, like 1048576 or 16m")
    return int(match[1]) << _UNITS[match[2]]


def defaults_file() -> dict[str, str]:
    """What `spark-defaults.conf` sets, where there is one: it counts more than what we prefer."""
    directory = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    path = Path(directory) / "spark-defaults.conf"
    if not path.is_file():
        return {}
    pairs = (re.split(r"[\s=]+", line.strip(), maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0].startswith("spark.")}


def is_one_machine(master: str | None) -> bool:
    """Whether driver and executors share a machine, and so its memory and its files."""
    return master is None or master == "local" or master.startswith(("local[", "local-cluster["))


def _with_attempts(master: str) -> str:
    """Local masters try a task again, like clusters do: a Python worker may be killed."""
    if master == "local":
        return f"local[1,{_ATTEMPTS}]"
    return re.sub(r"^local\[([0-9]+|\*)\]$", rf"local[\1,{_ATTEMPTS}]", master)


def _forget_gateway() -> None:
    """pyspark keeps the gateway for the next context of this process, and this one is gone."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None
