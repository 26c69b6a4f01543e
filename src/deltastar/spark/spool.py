"""Standard input or a pipe into a file, so that Spark can read it more than once."""

from __future__ import annotations

import os
import stat
import threading

from deltastar.rdf.files import STANDARD_INPUT, Input, ReadFault
from deltastar.rdf.formats import UPDATE_FORMATS, Format, named_format

_EXTENSIONS = {Format.PATCH: "rdfp", Format.NTRIPLES: "nt", Format.NQUADS: "nq", Format.SPARQL_UPDATE: "ru"}


def is_spooled(spec: str) -> bool:
    """Whether the source can be read only once."""
    return spec == STANDARD_INPUT or not (stat.S_ISREG(mode := os.stat(spec).st_mode) or stat.S_ISDIR(mode))


class Spool:
    """A thread that copies. The file ends with a whole line once `ended` is set."""

    def __init__(self, spec: str, input_format: str | None, directory: str) -> None:
        named = Format.PATCH if input_format is None else named_format(input_format, UPDATE_FORMATS)
        self.label = "standard input" if spec == STANDARD_INPUT else spec
        self.path = os.path.join(directory, f"input.{_EXTENSIONS[named]}")
        self.ended = threading.Event()
        self.fault: str | None = None
        self._spec = spec
        self._is_request = named is Format.SPARQL_UPDATE
        open(self.path, "wb").close()  # the source looks at it at once
        threading.Thread(target=self._copy, daemon=True).start()

    def _copy(self) -> None:
        last = b"\n"
        target = self.path + (".tmp" if self._is_request else "")
        try:
            with Input(self._spec, 1 << 18) as source, open(target, "wb", buffering=0) as file:
                while data := source.read():
                    last = data[-1:]
                    file.write(data)
                if last not in b"\r\n":
                    file.write(b"\n")
            if self._is_request:
                os.replace(target, self.path)
        except ReadFault as fault:
            self.fault = f"{self.label}: {fault.reason}; {fault.remedy}"
        except OSError as error:
            self.fault = f"{self.label}: it cannot be copied to {self.path}: {error.strerror or error}"
        finally:
            self.ended.set()
