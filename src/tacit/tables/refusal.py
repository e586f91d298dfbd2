"""How a question is refused: what is wrong, the place underlined, and what to do instead."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.arguments import LONGEST_QUESTION
from tacit.errors import QuestionRefused

_WIDTH = 76


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a question's text, from ``start`` up to but not including ``end``."""

    text: str
    start: int
    end: int

    def underlined(self) -> str:
        """The line with the place in it, and marks beneath.

        >>> print(Place("age / 2 >= 30", 0, 7).underlined())
          age / 2 >= 30
          ^^^^^^^
        """
        begin = self.text.rfind("\n", 0, self.start) + 1
        stop = self.text.find("\n", self.start)
        line = self.text[begin:] if stop < 0 else self.text[begin:stop]
        first = self.start - begin
        length = max(1, min(self.end, begin + len(line)) - self.start)
        if len(line) > _WIDTH:  # show the neighbourhood of a place in a long line
            cut = max(0, min(first - 20, len(line) - _WIDTH))
            head, tail = "..." if cut else "", "..." if cut + _WIDTH < len(line) else ""
            line = head + line[cut : cut + _WIDTH] + tail
            first += len(head) - cut
            length = min(length, len(line) - first)
        shown = "".join(letter if letter.isprintable() else " " for letter in line)
        return f"  {shown}\n  {' ' * first}{'^' * length}"


def refused(problem: str, place: Place, hint: str = "") -> QuestionRefused:
    """The error to raise for a question that cannot be answered."""
    return QuestionRefused(
        f"{problem}\n{place.underlined()}" + (f"\n  hint: {hint}" if hint else "")
    )


def readable(text: object, longest: int = LONGEST_QUESTION) -> str:
    """A text that may be read at all: of a length that is read at once, and valid Unicode."""
    if not isinstance(text, str):
        raise QuestionRefused(
            f"a question is a text, such as 'age >= 60', and not of type {type(text).__name__}"
        )
    if len(text) > longest:
        raise QuestionRefused(
            f"a question has at most {longest} characters, and this one has {len(text)}: "
            "give long lists as parameters (town in :towns), or ask several questions"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        pass  # and refused below, without the text behind it
    else:
        if "\0" not in text:
            return text
    raise QuestionRefused("this question is not valid Unicode text: remove what cannot be typed")
