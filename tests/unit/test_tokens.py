"""The tokenizer: kinds, places, faults; nothing lost, nothing slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltastar.query.tokens import Kind, Token, advance, describe_fault, significant, tokenize


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.text) for token in significant(tokenize(text))]


def first_fault(text: str) -> Token:
    return next(token for token in tokenize(text) if token.kind is Kind.FAULT)


ONE_TOKEN = {
    Kind.IRI: ["<>", "<http://ex/a#b>", "<a>", r"<http://ex/\u00e9\U0001F600>", "<\u00a0\u2028>", "<OPTIONAL>"],
    Kind.STRING: [
        '""',
        "''",
        '"a"',
        '"OPTIONAL"',
        '"it\'s"',
        r'"a\"b\\"',
        '"# no comment"',
        '"a\tb"',
        '""""""',
        '"""a"b""c\n\r"""',
        "'''it's\n'''",
        r'"""\""""',
        r"'''\\'''",
        r'"\q"',
    ],
    Kind.BLANK: ["_:a", "_:0", "_:a.b-c", "_:a..b", "_:_", "_:é", r"_:\u00e9"],
    Kind.PNAME: [
        ":",
        "ex:",
        ":a",
        "ex:a",
        "ex:optional",
        "optional:x",
        "e.x:a",
        "ex:a.b",
        "ex:a:b",
        "ex:0",
        "ex:%41",
        r"ex:a\,b",
        r"ex:\-",
        "ex:a-b",
        "é:é",
        r"ex:\u00e9",
        "a-b:c",
        "ex::",
    ],
    Kind.VARIABLE: ["?x", "$x", "?optional", "?0", "?é", "?a\u0300", r"?\u00e9", "?_"],
    Kind.NUMBER: ["0", "01", "+5", "-5", "1.0", ".5", "-.5", "+1.e1", "1e0", "1.5E-3", ".5e+3", "1" * 50],
    Kind.LANGUAGE: ["@en", "@en-GB", "@x-1a-2", "@en--ltr"],
    Kind.WORD: ["a", "SELECT", "optional", "true", "_x", "GROUP_CONCAT", "é"],
    Kind.PUNCTUATION: [*"{}()[].,;*+?!|/^~=>&-", "^^", "<<", "<<(", "{|", "||", "&&", "!=", ">="],
    Kind.COMMENT: ["#", "# OPTIONAL { \" ' <"],
    Kind.SPACE: [" ", "\t\r\n \n"],
    Kind.FAULT: ["<", "\\", "$", "@", "%", '"', "'", "\x00", "\u00a0", "²", "\ud800", "\U0010ffff", "\x0b"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in ONE_TOKEN.items() for text in texts])
def test_one_token(kind: Kind, text: str) -> None:
    assert [(token.kind, token.text) for token in tokenize(text)] == [(kind, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ex:a.", "ex:a ."),
        ("ex:a..b", "ex:a..b"),
        ("_:a. ", "_:a ."),
        ("?x.y", "?x . y"),
        ("?x-1", "?x -1"),
        ("5.", "5 ."),
        ("5..6", "5 . .6"),
        ("5.e", "5 . e"),
        ("1e", "1 e"),
        ("1.5.6", "1.5 .6"),
        ("true.", "true ."),
        ("true.5", "true .5"),
        ("a.b.c", "a . b . c"),
        ("a.b:c", "a.b:c"),
        ("a-b", "a - b"),
        ("a-5.e1", "a -5.e1"),
        (":p+5", ":p +5"),
        (":p+ 5", ":p + 5"),
        (":p?x", ":p ?x"),
        (":p? x", ":p ? x"),
        (":p*?x", ":p * ?x"),
        ("(:p)?x", "( :p ) ?x"),
        ("^^^:p", "^^ ^ :p"),
        ("<<(?s", "<<( ?s"),
        ("<< <a>", "<< <a>"),
        ("{|:p", "{| :p"),
        ("SELECT?x{?x a<b>}", "SELECT ?x { ?x a <b> }"),
        ('"a"@en.', '"a" @en .'),
        ('"a"^^xsd:date.', '"a" ^^ xsd:date .'),
        ('""a""', '"" a ""'),
        ("'a''b'", "'a' 'b'"),
        ('"a"#"b"\n"c"', '"a" "c"'),
        ("<a#b>#c\r?x", "<a#b> ?x"),
        ("?x<5", "?x < 5"),
        ("<a b>", "< a b >"),
        ("<a{b}>", "< a { b } >"),
        ("ex:a%4", "ex:a % 4"),
    ],
)
def test_several_tokens(text: str, expected: str) -> None:
    assert " ".join(token for _, token in kinds(text)) == expected


def test_places() -> None:
    text = 'SELECT\t?x\r\n{\r?x ?p """a\nb\r\nc""" .\n# x\n\n}'
    places = [(token.text, token.line, token.column) for token in significant(tokenize(text))]
    assert places == [
        ("SELECT", 1, 1),
        ("?x", 1, 8),
        ("{", 2, 1),
        ("?x", 3, 1),
        ("?p", 3, 4),
        ('"""a\nb\r\nc"""', 3, 7),
        (".", 5, 6),
        ("}", 8, 1),
    ]


def test_an_error_within_a_token_has_its_own_place() -> None:
    (token,) = tokenize('"""a\nbc"""')
    assert str(token.error("here", 6)) == "line 2, column 2: here"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('?x\n"abc', 'line 2, column 1: a string is not closed: " is missing; a string over several lines needs """'),
        ("'a\nb'", "line 1, column 1: a string is not closed: ' is missing; a string over several lines needs '''"),
        ('"""a"', 'line 1, column 1: a string is not closed: """ is missing'),
        ("\r\n\r '''a\\'''", "line 3, column 2: a string is not closed: ''' is missing"),
        ("<http://ex/a", "line 1, column 1: an IRI is not closed; '>' is missing"),
        ("<http://ex/a\n>", "line 1, column 1: an IRI is not closed; '>' is missing"),
        ("?x <a b>", "line 1, column 6: ' ' is not allowed in an IRI; percent-encode it"),
        ("<a{b}>", "line 1, column 3: '{' is not allowed in an IRI; percent-encode it"),
        (r"<a\nb>", r"line 1, column 3: bad escape in an IRI; only \uXXXX and \UXXXXXXXX are allowed"),
        (r"<a\u12>", r"line 1, column 3: bad escape in an IRI; only \uXXXX and \UXXXXXXXX are allowed"),
        ("\x00", r"line 1, column 1: '\x00' does not belong in a query here"),
        ("?x §", "line 1, column 4: '§' does not belong in a query here"),
    ],
)
def test_faults(text: str, message: str) -> None:
    assert str(describe_fault(text, first_fault(text))) == message


PIECES = [*"\"'<>_:?$@^.#\\{}|~-+ \t\r\na0é", "\\u00e9", "ex:", '"""', "\ud800", "true"]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_the_tokens_are_the_text(text: str) -> None:
    place, tokens = (1, 1), list(tokenize(text))
    for token in tokens:
        assert (token.line, token.column) == place
        place = advance(*place, token.text)
    assert "".join(token.text for token in tokens) == text
    assert all(describe_fault(text, token).line for token in tokens if token.kind is Kind.FAULT)


@pytest.mark.parametrize(
    "piece", ["a.", "a-", "_:", "\\u00e9", "<a", '"a', "'''", '"\\', "?a.", "1.", "a:.", "@en-", "{|<<", "ex:a\\,."]
)
def test_time_is_linear_up_to_the_first_fault(piece: str) -> None:
    started = time.process_time()
    for token in tokenize(piece * 30_000):
        if token.kind is Kind.FAULT:
            break
    assert time.process_time() - started < 3  # takes 0.1 s; quadratic ones take minutes
