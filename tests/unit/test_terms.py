"""Terms: what is read, what is refused and where, and that text, value and term go round."""

from __future__ import annotations

import copy
import logging
import pickle
import re

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st

from deltastar.errors import TermError
from deltastar.rdf import grammar
from deltastar.rdf.terms import (
    IRI,
    RDF_LANG_STRING,
    XSD_STRING,
    BlankNode,
    Literal,
    Term,
    Triple,
    check_iri,
    escape,
    of_canonical,
    read_term,
    term,
    unescape,
)

XSD = "http://www.w3.org/2001/XMLSchema#"

CHARACTERS = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\t\n\r\x00\x7f\x85\u2028\xa0\ufffe\ufeff')
TEXTS = st.text(CHARACTERS, max_size=8)
IRI_TEXTS = st.builds(
    "{}:{}".format,
    st.sampled_from(["http", "urn", "a+b-c.d", "X"]),
    st.text(CHARACTERS.filter(lambda char: re.match(r'[^\x00-\x20<>"{}|^`\\]', char) is not None), max_size=8),
)
LABELS = st.from_regex(r"\A[A-Za-z_0-9\u00e9\u4e00]([A-Za-z0-9_.\u00b7-]{0,5}[A-Za-z0-9_-])?\Z")
LANGUAGES = st.from_regex(r"\A[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,2}\Z")
TERMS = st.one_of(
    st.builds(IRI, IRI_TEXTS),
    st.builds(BlankNode, LABELS),
    st.builds(Literal, TEXTS),
    st.builds(Literal, TEXTS, language=LANGUAGES),
    st.builds(Literal, TEXTS, datatype=IRI_TEXTS),
)

CANONICAL = [
    ("<http://ex/a>", "<http://ex/a>"),
    (r"<http://ex/caf\u00e9>", "<http://ex/café>"),
    (r"<http://ex/\U0001F600>", "<http://ex/😀>"),
    ("<http://ex/\x85\u2028\xa0>", "<http://ex/\x85\u2028\xa0>"),
    ("<urn:x>", "<urn:x>"),
    ("<a:>", "<a:>"),
    ("<HTTP://ex/a>", "<HTTP://ex/a>"),
    ("_:b1", "_:b1"),
    ("_:1.b-c", "_:1.b-c"),
    ("_:é·", "_:é·"),
    ('""', '""'),
    ('"a"', '"a"'),
    ('"tab\there"', r'"tab\there"'),
    (r'"\t\b\n\r\f\"\'\\"', r'''"\t\b\n\r\f\"'\\"'''),
    (r'"\u0000\u001f\u007F"', r'"\u0000\u001F\u007F"'),
    (r'"caf\u00E9 \U0001F600"', '"café 😀"'),
    (r'"\u000a\U00000022"', r'"\n\""'),
    ('"a"@EN', '"a"@en'),
    ('"a"@pt-BR', '"a"@pt-br'),
    (f'"a"^^<{XSD_STRING}>', '"a"'),
    (r'"a"^^<http://www.w3.org/2001/XMLSchema#\u0073tring>', '"a"'),
    (f'"01"^^<{XSD}int>', f'"01"^^<{XSD}int>'),
    (f'"a"^^<{RDF_LANG_STRING}>', f'"a"^^<{RDF_LANG_STRING}>'),
]


@pytest.mark.parametrize(("text", "canonical"), CANONICAL)
def test_a_term_is_its_canonical_text(text: str, canonical: str) -> None:
    read = term(text)
    assert str(read) == canonical
    assert type(str(read)) is str
    assert read == canonical
    assert hash(read) == hash(canonical)
    assert term(canonical) == read
    assert type(of_canonical(canonical)) is type(read)


REFUSED = [
    ("", 1, "the row ends where a term should be"),
    ("<http://ex/a", 1, "'>' is missing"),
    ("<http://ex/a b>", 13, "' ' is not allowed in an IRI"),
    ("<http://ex/{a}>", 12, "'{' is not allowed in an IRI"),
    ("<http://ex/<a>", 12, "'<' is not allowed in an IRI"),
    (r"<http://ex/\n>", 12, "bad escape in an IRI"),
    (r"<http://ex/\u00e>", 12, "bad escape in an IRI"),
    (r"<http://ex/\u0020>", 1, "' ' is not allowed in an IRI"),
    (r"<http://ex/\ud800>", 12, "is not a character"),
    (r"<http://ex/\U00110000>", 12, "is not a character"),
    ("<http://ex/\ud800>", 1, "is not allowed in an IRI"),
    ("<a>", 1, "is a relative IRI; write it in full"),
    ("<>", 1, "is a relative IRI"),
    ("<//ex/a>", 1, "is a relative IRI"),
    ("<1a:b>", 1, "is a relative IRI"),
    ("<< <http://a/> <http://b/> <http://c/> >>", 1, "triple terms"),
    ('"a', 1, "'\"' is missing"),
    ('"a\nb"', 1, "'\"' is missing"),
    (r'"a\qb"', 3, "bad escape in a literal"),
    (r'"a\u12"', 3, "bad escape in a literal"),
    (r'"a\uD83D\uDE00"', 3, "is not a character"),
    (r'"\U00110000"', 2, "is not a character"),
    ('"a\ud800"', 3, "lone surrogate"),
    ('"a"@', 4, "bad language tag"),
    ('"a"@1', 4, "bad language tag"),
    ('"a"@en-', 4, "bad language tag"),
    ('"a"@en--ltr', 4, "bad language tag"),
    ('"a"^^', 4, "a datatype is written ^^<iri>"),
    ('"a"^^xsd:int', 4, "a datatype is written ^^<iri>"),
    ('"a"^^<int>', 6, "is a relative IRI"),
    ('"a"x', 4, "unexpected text after the term: 'x'"),
    ("_:", 1, "bad blank node"),
    ("_:-a", 1, "bad blank node"),
    ("_::a", 1, "bad blank node"),
    ("_:a:b", 4, "unexpected text after the term"),
    ("_:a.", 4, "unexpected text after the term: '.'"),
    ("ex:a", 1, "ex:a is a prefixed name; write the IRI in full"),
    ("http://ex/a", 1, "is not in angle brackets; an IRI is written <http://ex/a>"),
    ("5", 1, f'5 is not a term; write "5"^^<{XSD}integer>'),
    ("-5.5", 1, f'write "-5.5"^^<{XSD}decimal>'),
    ("1e6", 1, f'write "1e6"^^<{XSD}double>'),
    ("true", 1, f'write "true"^^<{XSD}boolean>'),
    ("'a'", 1, "double quotes"),
    ("?x", 1, "?x is a variable"),
    ("a", 1, "'a' is not a term"),
    ("[", 1, "'[' is not a term"),
]


@pytest.mark.parametrize(("text", "column", "reason"), REFUSED)
def test_what_is_no_term_is_refused_with_its_place(text: str, column: int, reason: str) -> None:
    with pytest.raises(TermError) as caught:
        term(text)
    assert reason in caught.value.reason
    assert caught.value.column == column
    if not reason.startswith(("unexpected", "the row ends")):
        with pytest.raises(TermError) as caught:
            read_term("   " + text, 3)
        assert caught.value.column == column + 3


@given(TERMS)
def test_term_of_text_is_the_term(value: Term) -> None:
    assert term(str(value)) == value
    assert type(term(str(value))) is type(value)
    assert term(value) is value
    assert eval(repr(value)) == value
    assert pickle.loads(pickle.dumps(value)) == value
    assert type(pickle.loads(pickle.dumps(value))) is type(value)
    assert copy.deepcopy(value) == value


@given(TEXTS)
def test_value_of_literal_is_the_value(value: str) -> None:
    assert Literal(value).value == value
    assert unescape(escape(value)) == value
    assert re.search(r'[\x00-\x1f\x7f]|(?<!\\)(?:\\\\)*"', escape(value)) is None
    assert Literal(value).to_json() == {"type": "literal", "value": value}


@given(st.lists(CHARACTERS | st.sampled_from(["\\u0041", "\\U00000042", "\\n", "\\'"]), max_size=6).map("".join))
def test_escapes_mean_the_same_inside_a_literal(text: str) -> None:
    try:
        value = unescape(text)
    except TermError:
        with pytest.raises(TermError):
            term(f'"{text}"')
        return
    if '"' not in re.sub(r"\\.", "", text, flags=re.DOTALL) and not re.search(r"[\r\n]", text):
        assert term(f'"{text}"') == Literal(value)


@given(TERMS)
def test_rdflib_gives_the_term_back(value: Term) -> None:
    logging.disable(logging.WARNING)  # rdflib warns of lexical forms that do not fit their datatype
    try:
        there = value.to_rdflib()
    finally:
        logging.disable(logging.NOTSET)
    assert isinstance(there, rdflib.term.Identifier)
    assert term(there) == value
    if isinstance(value, Literal):
        assert str(there) == value.value


def test_rdflib_keeps_lexical_forms() -> None:
    there = term(f'"01"^^<{XSD}integer>').to_rdflib()
    assert str(there) == "01"
    assert term(there) == f'"01"^^<{XSD}integer>'


def test_other_strings_are_read_and_other_things_refused() -> None:
    class Text(str):
        """As numpy and pandas have them."""

    assert term(Text("<http://ex/a>")) == IRI("http://ex/a")
    with pytest.raises(TermError, match="int is not a term; give an N-Triples string"):
        term(5)


def test_parts_of_a_literal() -> None:
    assert Literal("a").datatype == XSD_STRING
    assert Literal("a", datatype=XSD_STRING) == Literal("a")
    tagged = Literal('say "x"@', language="pt-BR")
    assert (tagged.value, tagged.language, tagged.datatype) == ('say "x"@', "pt-br", RDF_LANG_STRING)
    assert tagged.to_json() == {"type": "literal", "value": 'say "x"@', "xml:lang": "pt-br"}
    typed = Literal("a^^<b>", datatype="http://ex/t")
    assert (typed.value, typed.language, typed.datatype) == ("a^^<b>", "", "http://ex/t")
    assert typed.to_json() == {"type": "literal", "value": "a^^<b>", "datatype": "http://ex/t"}
    assert IRI("http://ex/a").to_json() == {"type": "uri", "value": "http://ex/a"}
    assert BlankNode("b").to_json() == {"type": "bnode", "value": "b"}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: IRI("a b"), "' ' is not allowed"),
        (lambda: IRI("a"), "relative IRI"),
        (lambda: BlankNode("a b"), "is not a blank node label"),
        (lambda: BlankNode("a\n"), "is not a blank node label"),
        (lambda: Literal("\ud800"), "lone surrogate"),
        (lambda: Literal("a", language="e n"), "is not a language tag"),
        (lambda: Literal("a", language="en\n"), "is not a language tag"),
        (lambda: Literal("a", language="en", datatype=XSD_STRING), "not both"),
        (lambda: Literal("a", datatype="int"), "relative IRI"),
        (lambda: unescape("\\"), "is not an escape"),
    ],
)
def test_makers_refuse_what_is_none(make: object, reason: str) -> None:
    with pytest.raises(TermError, match=re.escape(reason)):
        make()  # type: ignore[operator]


@given(st.characters(max_codepoint=0x2FF) | st.characters(exclude_categories=["Cs"]))
def test_iri_characters_are_those_of_the_grammar(char: str) -> None:
    is_allowed = re.fullmatch(r'[^\x00-\x20<>"{}|^`\\]', char) is not None
    assert (re.fullmatch(grammar.IRI_CHARS, char) is not None) is is_allowed
    if is_allowed:
        check_iri(f"a:{char}")
    else:
        with pytest.raises(TermError):
            check_iri(f"a:{char}")


def test_a_triple_prints_as_a_row() -> None:
    assert str(Triple(IRI("a:s"), IRI("a:p"), Literal("o"))) == '<a:s> <a:p> "o" .'
