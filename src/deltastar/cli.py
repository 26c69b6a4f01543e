"""The command line: options to calls, errors to exit codes. Everything but deltas goes to standard error."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from deltastar import __version__
from deltastar.errors import DeltastarError, QueryError, UnknownQueryError, UsageError

OK, FAILED, WRONG_COMMAND, INTERRUPTED = 0, 1, 2, 130

_ENGINES = ("spark", "inline", "paper")
_ENGINE = "DELTASTAR_ENGINE"

_DESCRIPTION = "Keeps the answers of SPARQL queries exactly up to date while the RDF graph under them changes."
_EXIT_CODES = """exit codes:
  0    all well
  1    the run failed
  2    the command was wrong: a bad option, a query that does not parse, a file that is not there
  3    finished, with rejected rows
  130  interrupted; everything reported so far is on disk, and a run with --checkpoint can be continued
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The entry point: runs one command, and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        with _terminated_like_interrupted():
            command: Callable[[argparse.Namespace], int] = options.command
            return command(options)
    except BrokenPipeError:  # whoever read our output has had enough
        _drop(sys.stdout)
        return OK
    except KeyboardInterrupt:
        _say("deltastar: interrupted")
        return INTERRUPTED
    except DeltastarError as error:
        if options.debug:
            raise
        _say(f"deltastar: {error}")
        return WRONG_COMMAND if isinstance(error, UsageError | QueryError | UnknownQueryError) else FAILED
    except (OSError, RecursionError, MemoryError) as error:
        if options.debug:
            raise
        _say(f"deltastar: {type(error).__name__}: {error} (--debug shows where)")
        return FAILED


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM means the same as Ctrl-C."""
    try:
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not the main thread: signals are somebody else's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(options: argparse.Namespace) -> int:
    from deltastar.commands import run

    return run(options)


def _explain(options: argparse.Namespace) -> int:
    from deltastar.commands import explain

    return explain(options)


def _answers(options: argparse.Namespace) -> int:
    from deltastar.commands import answers

    return answers(options)


def _verify(options: argparse.Namespace) -> int:
    from deltastar.commands import verify

    return verify(options)


def _bench(options: argparse.Namespace) -> int:
    from deltastar.commands import bench

    return bench(options)


def _warm(options: argparse.Namespace) -> int:
    from deltastar.commands import warm

    return warm(options)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and where help is."""

    def error(self, message: str) -> NoReturn:
        _say(f"{self.prog}: {message}\ntry '{self.prog} --help'")
        raise SystemExit(WRONG_COMMAND)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="deltastar",
        description=_DESCRIPTION,
        epilog=_EXIT_CODES + "\nexample:\n  deltastar run ring.rq --updates transfers.rdfp",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"deltastar {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_explain(commands)
    _add_answers(commands)
    _add_verify(commands)
    _add_bench(commands)
    _add_command(commands, "warm", _warm, "compile the kernel ahead of the first run", "deltastar warm")
    return parser


def _add_command(
    commands: argparse._SubParsersAction[Any],
    name: str,
    command: Callable[[argparse.Namespace], int],
    help: str,
    example: str,
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(command=command)
    return parser


def _add_queries_and_updates(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "queries",
        nargs="+",
        metavar="QUERY.rq",
        help="a file with a SPARQL SELECT or ASK over triple patterns; the query is named after the file, or NAME=FILE",
    )
    parser.add_argument(
        "--updates",
        required=True,
        metavar="SRC",
        help="the stream: a file (.rdfp .nt .nq .ru, also .gz or .zst), a directory of them in name order, "
        "or - for standard input",
    )
    parser.add_argument(
        "--input-format",
        metavar="FORMAT",
        help="rdfp, nt, nq or ru, where the name of the source does not tell (standard input: rdfp)",
    )
    parser.add_argument(
        "--initial",
        metavar="GRAPH",
        help="the graph before the first message: .nt .nq .ttl .trig .rdf .jsonld, also .gz or .zst (default: empty)",
    )
    parser.add_argument(
        "--granularity",
        choices=("message", "transaction"),
        default="message",
        help="report after every message (default), or the net effect of every transaction",
    )


def _add_run(commands: argparse._SubParsersAction[Any]) -> None:
    parser = _add_command(
        commands,
        "run",
        _run,
        "apply a stream of updates, and write what each message adds to the answers and removes from them",
        "deltastar run ring.rq fans=queries/q7.rq --updates updates/ --deltas deltas.jsonl --answers final/",
    )
    _add_queries_and_updates(parser)
    add = parser.add_argument
    add("--deltas", default="-", metavar="DEST", help="a file, DIR/ for a directory of parts, or - (default)")
    add(
        "--format", choices=("jsonl", "csv", "tsv", "parquet"), help="of the deltas (default: by extension, else jsonl)"
    )
    add("--answers", metavar="DEST", help="write the final answers: a .srj, .csv or .tsv file, or a directory of them")
    add("--follow", action="store_true", help="go on with what is added to the file or directory, without end")
    add("--checkpoint", metavar="DIR", help="continue here after an interruption; nothing is lost or written twice")
    add(
        "--engine",
        choices=_ENGINES,
        default=_engine(),
        help="what evaluates: spark (default), embedded or on a cluster; inline, in this process; paper, with the "
        f"paper's algorithms in plain Python; the environment variable {_ENGINE} sets another default",
    )
    add(
        "--shards",
        type=_positive,
        metavar="N",
        help="with spark: how many parts evaluate side by side (default: cores)",
    )
    add("--master", metavar="URL", help="with spark: the cluster (default: local[*], which is this machine)")
    add(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with spark: a setting of Spark; may be given several times, and counts more than spark-defaults.conf",
    )
    add("--rejects", metavar="PATH", help="where malformed rows go (default: DELTAS.rejects.jsonl)")
    add("--strict", action="store_true", help="stop at the first malformed row, repeated insert or absent delete")
    add("--quiet", action="store_true", help="say nothing but errors")
    _add_progress(parser)


def _add_explain(commands: argparse._SubParsersAction[Any]) -> None:
    parser = _add_command(
        commands,
        "explain",
        _explain,
        "show how a query is taken apart: its class, components, stars, orders and bounds",
        "deltastar explain ring.rq --format svg > ring.svg",
    )
    parser.add_argument("query", metavar="QUERY.rq", help="a file, or NAME=FILE")
    parser.add_argument("--format", choices=("text", "json", "svg", "mermaid"), default="text", help="default: text")
    parser.add_argument("--shards", type=_positive, metavar="N", help="show which of so many shards triples go to")
    parser.add_argument("--frequencies", metavar="FILE", help="with --shards: how often patterns match, as JSON")


def _add_answers(commands: argparse._SubParsersAction[Any]) -> None:
    parser = _add_command(
        commands,
        "answers",
        _answers,
        "add up deltas: the answers at the end, or at any moment",
        "deltastar answers deltas.jsonl --query ring --at 1042 --format csv",
    )
    parser.add_argument("deltas", metavar="DELTAS", help="what run wrote: a file, a directory of parts, or -")
    parser.add_argument(
        "--query", metavar="NAME", help="this query only; needed when there are several, but for a table"
    )
    parser.add_argument("--at", metavar="SEQ|TIME", help="after this message, or at this time (ISO 8601)")
    parser.add_argument("--format", choices=("srj", "csv", "tsv", "table"), default="table", help="default: table")


def _add_verify(commands: argparse._SubParsersAction[Any]) -> None:
    parser = _add_command(
        commands,
        "verify",
        _verify,
        "check the engine against a naive evaluator that starts from scratch after every message (slow)",
        "deltastar verify ring.rq --updates transfers.rdfp",
    )
    _add_queries_and_updates(parser)
    _add_progress(parser)


def _add_bench(commands: argparse._SubParsersAction[Any]) -> None:
    parser = _add_command(
        commands,
        "bench",
        _bench,
        "measure where the time goes: a stream through the kernel in this process, stage by stage",
        "deltastar bench ring.rq --updates transfers.rdfp --repeat 5",
    )
    _add_queries_and_updates(parser)
    parser.add_argument(
        "--repeat", type=_positive, default=3, metavar="N", help="the best of so many runs (default: 3)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_progress(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--progress", action="store_true", default=None, help="show progress also where standard error is no terminal"
    )


def _engine() -> str:
    """The engine where no option says which."""
    chosen = os.environ.get(_ENGINE) or "spark"
    if chosen not in _ENGINES:
        _say(f"deltastar: {_ENGINE}={chosen} is not an engine; choose from {', '.join(_ENGINES)}")
        raise SystemExit(WRONG_COMMAND)
    return chosen


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return number


def _say(text: str) -> None:
    with suppress(OSError):  # standard error may be full; the exit code speaks for itself
        print(text, file=sys.stderr, flush=True)


def _drop(stream: object) -> None:
    """Keeps the interpreter from writing to a closed pipe when it shuts down."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
