"""Sinks: where deltas, dead letters and answers go, and how deltas are read back."""

from deltastar.sink.answer_files import answer_paths, write_answers
from deltastar.sink.base import DeltaSink, SinkState
from deltastar.sink.open import exists, format_of, open_sink
from deltastar.sink.rejects import RejectSink, default_rejects_path, open_rejects
from deltastar.sink.tables import AnswerTable, render

__all__ = [
    "AnswerTable",
    "DeltaSink",
    "RejectSink",
    "SinkState",
    "answer_paths",
    "default_rejects_path",
    "exists",
    "format_of",
    "open_rejects",
    "open_sink",
    "render",
    "write_answers",
]
