"""The router: every row to its shards, once, in order, whatever it looks like."""

from __future__ import annotations

import pyarrow
import pytest

from deltastar.errors import InvariantError, UsageError
from deltastar.rdf.ntriples import Syntax
from deltastar.sharding.packed import HAS_DROPPED, HAS_GRAPHS, IS_INITIAL, IS_NUMBERED, MUTED, unpack
from deltastar.sharding.router import Router

STAR = {"star": "SELECT * { ?x <p:p> ?y ; <p:q> ?z }"}


def texts(blobs: list[bytes]) -> list[list[str]]:
    return [bytes(unpack(blob).text).decode().splitlines() for blob in blobs]


def places(blobs: list[bytes]) -> list[list[int]]:
    return [(unpack(blob).places >> 1).tolist() for blob in blobs]


def test_only_rows_that_matter_are_packed() -> None:
    data = b"""A <p:1> <p:p> <p:2> .
# a note
A <p:1> <p:other> <p:2> .
D\t<p:1>  <p:q> "x"@en .# odd, but plain
"""
    blob = Router(STAR, 1).route(data, Syntax.PATCH, "f")[0]
    read = unpack(blob)
    assert texts([blob]) == [["A <p:1> <p:p> <p:2> .", 'D <p:1>  <p:q> "x"@en .']]
    assert (read.messages, read.lines, read.relevant, read.flags) == (3, 4, 2, HAS_DROPPED)
    assert read.places.tolist() == [2, 6]


def test_where_a_term_goes_never_changes() -> None:
    """A checkpoint outlives processes and versions: the same term must go to the same shard."""
    router = Router(STAR, 8)
    found = []
    for node in ("p:1", "p:2", "http://example.org/a/longer/one", "p:é"):
        blobs = router.route(f"A <{node}> <p:p> <p:x> .\n".encode(), Syntax.PATCH, "f")
        found.append([shard for shard, blob in enumerate(blobs) if len(unpack(blob).places)])
    assert found == GOLDEN


GOLDEN = [[2], [5], [3], [5]]


def test_every_shard_hears_of_marks_and_counts() -> None:
    data = b"TX .\nA <p:1> <p:p> <p:2> .\nnonsense\nA oops\nTC  . # end\n"
    blobs = Router(STAR, 3).route(data, Syntax.PATCH, "f")
    assert [unpack(blob).messages for blob in blobs] == [2, 2, 2]
    assert [text[0] for text in texts(blobs)] == ["TX . #1#TX .", "TX .", "TX ."]
    assert [text[-1] for text in texts(blobs)] == ["TC . #5#TC  . # end", "TC .", "TC ."]
    letters = [[line for line in text if line.startswith("!")] for text in texts(blobs)]
    assert [len(lines) for lines in letters] == [2, 0, 0]
    assert letters[0][0].startswith("![3, 1, ")
    assert letters[0][1].endswith('"A oops", true]')


def test_rows_in_other_spellings_are_canonical_afterwards() -> None:
    data = 'A <p:1> <p:\\u0070> "a"^^<http://www.w3.org/2001/XMLSchema#string> .\nA <p:1> <p:q> "x"@EN <p:g> .\n'
    blob = Router(STAR, 1).route(data.encode(), Syntax.PATCH, "f")[0]
    assert texts([blob]) == [['A <p:1> <p:p> "a" .', 'A <p:1> <p:q> "x"@en .']]
    assert unpack(blob).flags == HAS_GRAPHS


def test_a_row_is_counted_by_one_shard() -> None:
    router = Router({"path": "SELECT * { ?a <p:p> ?b . ?b <p:p> ?c . ?c <p:p> ?a }"}, 8)
    data = "".join(f"A <p:{n}> <p:p> <p:{n + 1}> .\n" for n in range(50)).encode()
    blobs = [unpack(blob) for blob in router.route(data, Syntax.PATCH, "f")]
    counted = sorted(place >> 1 for blob in blobs for place in blob.places.tolist() if not place & MUTED)
    assert counted == list(range(1, 51))
    assert sum(len(blob.places) for blob in blobs) > 150


def test_strict_keeps_what_no_query_matches_in_one_shard() -> None:
    data = "".join(f"A <p:{n}> <p:other> <p:{n + 1}> .\n" for n in range(64)).encode()
    sizes = [len(place) for place in places(Router(STAR, 4, strict=True).route(data, Syntax.PATCH, "f"))]
    assert sum(sizes) == 64
    assert min(sizes) > 4


def test_initial_graphs_and_other_syntaxes() -> None:
    router = Router(STAR, 1)
    blob = router.route(b"<p:1> <p:p> <p:2> .\n<p:1> <p:q> <p:2> <p:g> .\n", Syntax.NQUADS, "f", initial=True)[0]
    assert unpack(blob).flags == HAS_GRAPHS | IS_INITIAL
    assert texts([blob]) == [["A <p:1> <p:p> <p:2> .", "A <p:1> <p:q> <p:2> ."]]
    marked = b"\xef\xbb\xbfA <p:1> <p:p> <p:2> .\n"
    assert unpack(router.route(marked, Syntax.PATCH, "f")[0]).relevant == 1
    assert unpack(router.route(marked, Syntax.PATCH, "f", is_start=False)[0]).relevant == 0


def test_large_splits() -> None:
    """More rows than fit into any of the router's arrays at first, and lines that it has to read twice."""
    data = "".join(
        f"A <p:{n}> <p:p> <p:{n + 1}> .\n" if n % 3 else f"A <p:{n}> <p:\\u0070> <p:{n + 1}> .\nTX .\n"
        for n in range(20_000)
    )
    blobs = Router(STAR, 2).route(data.encode(), Syntax.PATCH, "f")
    rows = [[line for line in text if not line.startswith("T")] for text in texts(blobs)]
    assert sorted(rows[0] + rows[1]) == sorted(f"A <p:{n}> <p:p> <p:{n + 1}> ." for n in range(20_000))
    assert all(place == sorted(place) for place in places(blobs))


# Tables --------------------------------------------------------------------------------------------------------------

ROWS = [
    (7, "TX", None, None, None, None),
    (8, "ins", "<p:1>", "<p:p>", "<p:2>", "A <p:1> <p:p> <p:2> ."),
    (900_000_000_000, "D", "<p:1>", "<p:q>", '"\\u00e9"@EN', 'D <p:1> <p:q> "é"@en .'),
    (9, "A", "<p:1> <p:p>", "<p:2> . #", "<p:3>", "!"),
    (10, "A", "<p:1>", "<p:p>", "<p:2> <p:graph>", "!"),
    (11, "A", "<p:1>", "<p:p>", '"a\nb"', "!"),
    (12, "A", "<p:1>", "<p:p>", None, "!"),
    (13, "upsert", "<p:1>", "<p:p>", "<p:2>", "!"),
    (14, "A", '"literal"', "<p:p>", "<p:2>", "!"),
    (15, "+", "_:b", "<p:other>", "<p:2>", ""),
    (16, "TC", None, None, None, None),
]


@pytest.mark.parametrize("kind", ["lists", "arrow"])
def test_tables(kind: str) -> None:
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    given = columns[:5] if kind == "lists" else [pyarrow.array(column) for column in columns[:5]]
    (blob,) = Router(STAR, 1).route_rows(*given)
    read = unpack(blob)
    expected = [(row[0], row[5] if row[5] is not None else f"{row[1]} . #0#{row[1]} .") for row in ROWS if row[5] != ""]
    found = list(zip(places([blob])[0], texts([blob])[0], strict=True))
    assert [place for place, _ in found] == [place for place, _ in expected]
    for (_, line), (_, text) in zip(found, expected, strict=True):
        assert line.startswith("!") if text == "!" else line == text
    assert (read.messages, read.relevant, read.flags) == (9, 2, IS_NUMBERED | HAS_DROPPED)


def test_what_is_no_blob_is_refused() -> None:
    blob = Router(STAR, 1).route(b"A <p:1> <p:p> <p:2> .\n", Syntax.PATCH, "f")[0]
    for data in (b"", blob[:-1], blob + b"x", b"x" + blob[1:]):
        with pytest.raises(InvariantError, match="packed split"):
            unpack(data)


def test_a_router_needs_a_shard() -> None:
    with pytest.raises(UsageError, match="give 1 or more"):
        Router(STAR, 0)
