"""The terminals of RDF 1.1 N-Triples: patterns for other modules to build on, checks, and the escapes.

Text in, text out; nothing here knows of terms. Repeats are possessive throughout, so that matching, and finding the
place of a fault, takes time linear in the text, whatever the text is.
"""

from __future__ import annotations

import re

from deltastar.errors import TermError

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

# White space is excluded from an IRI up to U+0020 only: U+00A0, U+0085, U+2028 and the like are part of it.
# Written as what is in rather than what is out: that saves a quarter of the time that rows take.
IRI_CHARS = "[!#-;=?-\\[\\]_a-z~\x7f-\U0010ffff]"
UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*+:"
LANGUAGE = r"[A-Za-z]++(?:-[A-Za-z0-9]++)*+"
_NAME_START = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = _NAME_START + r"_0-9\u00b7\u0300-\u036f\u203f-\u2040" + "-"
# Without the ':' that the text of RDF 1.1 lets in: the W3C's own tests reject it, and RDF 1.2 took it out.
BLANK_LABEL = rf"[{_NAME_START}_0-9][{_NAME}]*+(?:\.++[{_NAME}]++)*+"

# Of terms that are canonical as they stand.
PLAIN_IRI = rf"<{SCHEME}{IRI_CHARS}*+>"
PLAIN_BLANK = r"_:[A-Za-z0-9_][A-Za-z0-9_-]*+(?:\.++[A-Za-z0-9_-]++)*+"
_CHARS = "[ !#-\\[\\]-~\x80-\U0010ffff]*+"
_STRING = rf'"{_CHARS}(?:\\[tbnrf"\\]{_CHARS})*+"'
_DATATYPE = rf"\^\^(?!<http://www\.w3\.org/2001/XMLSchema#string>){PLAIN_IRI}"
PLAIN_LITERAL = rf"{_STRING}(?:@[a-z]++(?:-[a-z0-9]++)*+|{_DATATYPE})?"

ESCAPE_IN_STRING = rf"\\[tbnrf\"'\\]|{UCHAR}"
IRI = re.compile(rf"<({IRI_CHARS}*+(?:(?:{UCHAR}){IRI_CHARS}*+)*+)>")
BLANK = re.compile(rf"_:({BLANK_LABEL})")
STRING = re.compile(rf'"([^"\\\n\r]*+(?:(?:{ESCAPE_IN_STRING})[^"\\\n\r]*+)*+)"')
LANGUAGE_TAG = re.compile(rf"@({LANGUAGE})(?![A-Za-z0-9-])")

_XSD = "http://www.w3.org/2001/XMLSchema#"
_WORD = re.compile(r"[^ \t\r\n<>\"#]++")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?[0-9]*\.[0-9]+")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_GOOD_IRI = re.compile(rf"<(?:{IRI_CHARS}++|{UCHAR})*+")
_GOOD_STRING = re.compile(rf'"(?:[^"\\\n\r]++|{ESCAPE_IN_STRING})*+')
_ABSOLUTE = re.compile(SCHEME)
_IRI_ILLEGAL = re.compile(r"[\x00-\x20<>\"{}|^`\\\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))", re.DOTALL)
_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_TO_ESCAPE = re.compile(r'[\x00-\x1f\x7f"\\]')
_ESCAPED = {"\t": "\\t", "\b": "\\b", "\n": "\\n", "\r": "\\r", "\f": "\\f", '"': '\\"', "\\": "\\\\"}


def check_iri(value: str) -> None:
    """Raises `TermError` unless the value is an absolute IRI as RDF 1.1 N-Triples writes them."""
    if (bad := _IRI_ILLEGAL.search(value)) is not None:
        raise TermError(f"{bad.group()!r} is not allowed in an IRI; percent-encode it", bad.start() + 1)
    if _ABSOLUTE.match(value) is None:
        raise TermError(f"<{clip(value)}> is a relative IRI; write it in full, with its scheme")


def check_string(value: str) -> None:
    """Raises `TermError` when the value holds half a surrogate pair: it is not Unicode text then."""
    if (bad := _SURROGATE.search(value)) is not None:
        raise TermError("a literal cannot hold a lone surrogate (U+D800 to U+DFFF)", bad.start() + 1)


def unescape(text: str) -> str:
    """Resolves the escapes of N-Triples. Raises `TermError` for one that is none."""
    return _ESCAPE.sub(_resolve, text) if "\\" in text else text


def escape(text: str) -> str:
    """A literal's lexical form as canonical N-Triples writes it between the quotes."""
    if _TO_ESCAPE.search(text) is None:
        return text
    return _TO_ESCAPE.sub(lambda match: _ESCAPED.get(match.group()) or f"\\u{ord(match.group()):04X}", text)


def iri_fault(text: str, start: int) -> TermError:
    """Why no IRI begins at `start`, where there is a '<'."""
    at = end_of(_GOOD_IRI, text, start)
    fault = text[at : at + 1]
    if fault == "\\":
        return TermError("bad escape in an IRI; only \\uXXXX and \\UXXXXXXXX are allowed", at + 1)
    if fault in ("", "\n", "\r"):
        return TermError("an IRI is not closed; '>' is missing", start + 1)
    return TermError(f"{fault!r} is not allowed in an IRI; percent-encode it", at + 1)


def string_fault(text: str, start: int) -> TermError:
    """Why no string begins at `start`, where there is a quote."""
    at = end_of(_GOOD_STRING, text, start)
    if text[at : at + 1] == "\\":
        allowed = "\\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX"
        return TermError(f"bad escape in a literal; allowed are {allowed}", at + 1)
    return TermError("a literal is not closed; '\"' is missing", start + 1)


def no_term(text: str, start: int) -> TermError:
    """Why no term begins at `start`, and what to write instead."""
    if text[start : start + 1] in ("", "\r", "\n"):
        return TermError("the row ends where a term should be", start + 1)
    word = text[start : max(end_of(_WORD, text, start), start + 1)]
    bare = word.rstrip(".")
    for pattern, datatype in ((_INTEGER, "integer"), (_DECIMAL, "decimal"), (_DOUBLE, "double")):
        if len(bare) < 1000 and pattern.fullmatch(bare):
            return TermError(f'{clip(bare)} is not a term; write "{clip(bare)}"^^<{_XSD}{datatype}>', start + 1)
    if bare in ("true", "false"):
        return TermError(f'{bare} is not a term; write "{bare}"^^<{_XSD}boolean>', start + 1)
    if word[0] == "'":
        return TermError("a literal is written in double quotes", start + 1)
    if word[0] == "?":
        return TermError(f"{clip(word)} is a variable; a row holds data only", start + 1)
    if "://" in word:
        return TermError(f"{clip(word)} is not in angle brackets; an IRI is written <{clip(bare)}>", start + 1)
    if ":" in word and word[0] not in "[({@":
        return TermError(f"{clip(word)} is a prefixed name; write the IRI in full, in angle brackets", start + 1)
    return TermError(f'{clip(word)!r} is not a term; write <iri>, "literal" or _:blank', start + 1)


def end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Where the match at `start` ends; `start` when there is none."""
    match = pattern.match(text, start)
    return start if match is None else match.end()


def clip(text: str) -> str:
    """At most 40 characters of it, for a message."""
    return text if len(text) <= 40 else text[:39] + "…"


def _resolve(match: re.Match[str]) -> str:
    short, long, char = match.groups()
    if char is not None:
        if char not in _UNESCAPED:
            raise TermError(f"\\{char} is not an escape", match.start() + 1)
        return _UNESCAPED[char]
    code = int(short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise TermError(f"{match.group()} is not a character", match.start() + 1)
    return chr(code)
