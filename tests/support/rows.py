"""Rows and files for the tests of sources."""

from __future__ import annotations

import gzip
from pathlib import Path

import zstandard

from deltastar.rdf.source import Stream
from deltastar.rdf.update import INSERT, Event, Update


def row(number: int, op: str = "A") -> str:
    """A row of RDF Patch, with its line end."""
    return f"{op} <http://ex/{number}> <http://ex/p> <http://ex/o> .\n"


def update(number: int, op: str = INSERT) -> Update:
    """What `row` brings."""
    return Update(op, f"<http://ex/{number}>", "<http://ex/p>", "<http://ex/o>")


def events_of(stream: Stream) -> list[Event]:
    """All events of a stream."""
    return [event for batch in stream for event in batch.events]


def write(path: Path, text: str | bytes) -> str:
    """Writes a file, compressed as its name says."""
    data = text if isinstance(text, bytes) else text.encode()
    packers = {".gz": gzip.compress, ".zst": zstandard.ZstdCompressor(write_checksum=True).compress}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(packers.get(path.suffix, bytes)(data))
    return str(path)


NT = "<http://ex/1> <http://ex/p> <http://ex/o> .\n"
TURTLE = "<http://ex/1> <http://ex/p> <http://ex/o> ."
RDF_XML = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="http://ex/">
  <rdf:Description rdf:about="http://ex/1"><ex:p rdf:resource="http://ex/o"/></rdf:Description>
</rdf:RDF>"""
JSON_LD = '{"@id": "http://ex/1", "http://ex/p": {"@id": "http://ex/o"}}'
GRAPHS = [("nt", NT), ("nq", NT), ("ttl", TURTLE), ("trig", f"{{ {TURTLE} }}"), ("rdf", RDF_XML), ("jsonld", JSON_LD)]
"""The triple of `update(1)` in each format of graphs, by extension."""
