"""Conditions as text: `cons > 2.5`, `state = 'TX' and load is not null`. A grammar of its own; nothing is evaluated.

    condition   = conjunction { "or" conjunction }
    conjunction = comparison { "and" comparison }
    comparison  = column operator literal | column "is" ["not"] "null"
    operator    = "=" "==" "!=" "<>" "<" "<=" ">" ">="
    literal     = a number | 'text' ('' is one quote) | true | false
    column      = a word | "any name in double quotes"

A comparison with null is neither true nor false, as in SQL: the row does not count.
"""

from __future__ import annotations

import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow.compute as pc

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"[^"]+")
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]))
    | (?P<operator>==|!=|<>|<=|>=|=|<|>)
    | (?P<word>[^\W\d][\w.]*)
    )""",
    re.VERBOSE,
)

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_RESERVED = ("and", "or", "is", "not", "null", "true", "false")


def condition(text: str) -> pc.Expression:
    """The condition as an expression of pyarrow's, for `where=`."""
    return _Parser(text).condition()


class _Parser:
    """Takes the tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()
        self._next = 0

    def condition(self) -> pc.Expression:
        parts = [self._conjunction()]
        while self._take("word", "or"):
            parts.append(self._conjunction())
        if self._next < len(self._tokens):
            raise self._wrong(f"what is {self._tokens[self._next][1]!r} doing there?")
        return reduce(operator.or_, parts)

    def _conjunction(self) -> pc.Expression:
        parts = [self._comparison()]
        while self._take("word", "and"):
            parts.append(self._comparison())
        return reduce(operator.and_, parts)

    def _comparison(self) -> pc.Expression:
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import

        column = pc.field(self._column())
        if self._take("word", "is"):
            wanted = not self._take("word", "not")
            if not self._take("word", "null"):
                raise self._wrong("after `is` comes `null` or `not null`")
            return column.is_null() if wanted else column.is_valid()
        sign = self._take("operator")
        if sign is None:
            raise self._wrong(f"after a column comes one of {' '.join(_OPERATORS)}, or `is null`")
        return _OPERATORS[sign](column, pc.scalar(self._literal()))

    def _column(self) -> str:
        quoted = self._take("quoted")
        if quoted:
            return quoted[1:-1]
        word = self._take("word")
        if word is None or word.lower() in _RESERVED:
            raise self._wrong("a comparison begins with a column")
        return word

    def _literal(self) -> Any:
        text = self._take("text")
        if text is not None:
            return text[1:-1].replace("''", "'")
        number = self._take("number")
        if number is not None:
            return int(number) if re.fullmatch(r"[-+]?\d+", number) else float(number)
        for word in ("true", "false"):
            if self._take("word", word):
                return word == "true"
        raise self._wrong("after an operator comes a number, 'text' in single quotes, true or false")

    def _take(self, kind: str, word: str | None = None) -> str | None:
        """The next token, if it is of this kind (and is this word, in any case)."""
        if self._next < len(self._tokens):
            found, text = self._tokens[self._next]
            if found == kind and (word is None or text.lower() == word):
                self._next += 1
                return text
        return None

    def _split(self) -> list[tuple[str, str]]:
        tokens, place = [], 0
        end = len(self._text.rstrip())
        while place < end:
            match = _TOKEN.match(self._text, place)
            if match is None or match.lastgroup is None:
                raise self._wrong(f"{self._text[place:].strip()!r} cannot be read")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        return tokens

    def _wrong(self, why: str) -> PystreamError:
        return PystreamError(f"condition {self._text!r}: {why}; such as: cons > 2.5 and state = 'TX'")
