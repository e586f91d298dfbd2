"""Texts that are almost questions: documented ones, with tokens left out, doubled, swapped."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|:?\w+(?:\.\d+)?|[<>!=]=|<>|\s+|.", re.DOTALL)

_WORDS = """
select from where group by having order limit offset distinct count count_if sum avg min max filter
over partition rows between and or not in is null true false like ilike similar to escape case when
then else end cast as try_cast date timestamp time interval exists any all some with recursive union
except intersect join left on using lateral unnest values array struct map row if coalesce nullif
current_date current_timestamp extract position substring trim overlaps at zone collate describe
insert into update delete create drop alter table view pragma set show use begin commit kill grant
explain for fetch window qualify pivot unpivot tablesample prior connect start match_recognize
xor div mod rlike regexp glob isnull notnull unknown symmetric asymmetric default of ordinality
pid age week cost stay score town smoker day at visits v labs agee :age :ages :town :Town :start
"""

_SIGNS = """
( ) (( )) [ ] { } {: {as: , ; . .. : :: := ? ?? @ @@ # $ $$ $1 % ^ & && | || ~ ! !! !=
= == <> <=> < <= > >= << >> -> ->> => + - -- * ** / // /* */ \\ ' '' " "" ` `` \t \n \r \0 \x0b
\u00a0 \u200b \u2028 \ufeff \u0661 é 😀 İ ß \ud800 \udfff 0 1 -1 00 1. .5 1e3 1e 1e99999 1_000 0x1F
0b1 x'1f' b'1' n'a' e'a' r'a' u&'a' 99999999999999999999999999 'a' '%' '' '2026-01-31' 'O''Hara'
"""

POOL = [*_WORDS.split(), *filter(None, re.split("[ \n]", _SIGNS)), "\n"]


def tokens(text: str) -> list[str]:
    """The text cut into pieces that mean something by themselves."""
    return _TOKEN.findall(text)


def mutated(seeds: Sequence[str], number: int, *, seed: int) -> Iterator[str]:
    """So many texts, each a documented one with a few changes; the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(number):
        pieces = tokens(chance.choice(seeds))
        for _ in range(chance.choice((1, 1, 2, 3, 5, 9))):
            _change(pieces, seeds, chance)
        yield "".join(pieces)


def _change(pieces: list[str], seeds: Sequence[str], chance: random.Random) -> None:
    """One change, in place."""
    at = chance.randrange(len(pieces) + 1)
    to = min(len(pieces), at + chance.choice((1, 1, 1, 2, 4)))
    match chance.randrange(9):
        case 0:
            del pieces[at:to]
        case 1:
            pieces[at:at] = pieces[at:to] * chance.choice((1, 1, 2, 30))
        case 2 if pieces:
            other = chance.randrange(len(pieces))
            at = min(at, len(pieces) - 1)
            pieces[at], pieces[other] = pieces[other], pieces[at]
        case 3 | 4:
            pieces[at:at] = [" ", chance.choice(POOL), " "]
        case 5:
            pieces[at:to] = [chance.choice(POOL)]
        case 6:
            pieces[at:at] = tokens(chance.choice(seeds))
        case 7:
            opening, closing = chance.choice((("(", ")"), ("[", "]"), ("{", "}"), ("not (", ")")))
            pieces[at:to] = [opening, *pieces[at:to], closing]
        case _:
            pieces[at:at] = [chr(chance.choice((chance.randrange(128), chance.randrange(0x3000))))]
