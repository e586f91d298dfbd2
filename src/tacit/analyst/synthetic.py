"""Synthetic rows: a frame of invented rows, in many columns, that may be published.

``table.synthetic(["age", "town", "smoker"], epsilon=1, budget=...)`` measures marginals of the
columns with noise, and draws rows that fit them: see `tacit.book.synthetic`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import ceil, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.binned import BinnedColumn, Bins, binned, places_of
from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.tabular import (
    SavedTabular,
    covers_as_json,
    covers_of_rows,
    load_json,
    plain_value,
    rows_that_count,
    save_json,
    with_since,
)
from tacit.book.laplace import error_steps
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.book.synthetic import SUPPORT, SyntheticMechanism
from tacit.book.weighted_rows import Marginal, cell_places
from tacit.errors import BadParameter, Infeasible
from tacit.numbers import Number, as_given, positive, probability, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Printed
from tacit.tables.engine.points import chosen_counts, needs_chosen_points
from tacit.tables.engine.public_rows import PublicRows, rows_schema
from tacit.tables.language.prepared import parse
from tacit.tables.schema.schema import EACH_ROW, Schema, read_schema, write_schema

if TYPE_CHECKING:
    from tacit.analyst.alternatives import Alternative
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine

Codes = NDArray[np.int64]
Marginals = Sequence[Sequence[str]]

DEFAULT_ROWS = 100_000
MOST_ROWS = 10_000_000

_VERSION = 1
_MOST_ROUNDS, _MOST_CANDIDATES = 16, 5_000
_ENOUGH = 10_000  # εn: from here on rounds helped, on the census table
_MOST_SHOWN = 40


# What is released --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarginalReport:
    """How the rows compare with one marginal that was measured."""

    columns: tuple[str, ...]
    cells: int
    apart: Fraction  # on average over the cells, from the noisy counts
    most_apart: Fraction
    noise_scale: Fraction  # of the noisy counts

    def within(self, beta: Number = "1/20") -> Fraction:
        """No cell of the rows is further from the truth than this, except with probability β."""
        each = probability(beta, "beta") / self.cells
        return self.most_apart + error_steps(self.noise_scale, each)

    def __str__(self) -> str:
        apart, within = (spaced(Fraction(ceil(each))) for each in (self.apart, self.within()))
        return (
            f"{' × '.join(self.columns)}: {apart} from what was measured on average, every cell "
            f"within {within} of the truth (95 %)"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Synthetic(Recordable, SavedTabular):
    """Invented rows, and the noisy counts that they were fitted to.

    Everything here was paid for and is public: it may be printed, saved and published.
    """

    plan: SyntheticPlan
    measured: tuple[Marginal, ...]
    people: int  # how many the rows stand for; measured, with noise
    codes: Codes  # one row a line; of text, the places among the keys
    recorded: Recorded | None = None
    """If it was told again and is about an older label: since when, and which."""

    @property
    def privacy(self) -> Privacy:
        """What it cost."""
        return self.plan.privacy

    @property
    def schema(self) -> Schema:
        """Of the table it came from."""
        return self.plan.schema

    def __len__(self) -> int:
        return len(self.codes)

    # Answering ----------------------------------------------------------------------------

    def count(self, question: str) -> Fraction:
        """About how many people a question counts, such as "age >= 60 and smoker".

        Nothing is promised about a single answer: `report` says how far the rows are from what
        was measured.
        """
        asked = parse(question, self._engine.schema)
        (steps,) = self._engine.values([asked])
        return asked.grid * Fraction(steps * self.people, len(self))

    @cached_property
    def _engine(self) -> PublicRows:
        columns = [column.column for column in self.plan.columns]
        return PublicRows(rows_schema(self.schema, columns), self.codes)

    @property
    def report(self) -> tuple[MarginalReport, ...]:
        """For each marginal that was measured, how far the rows are from it."""
        return self._report

    @cached_property
    def _report(self) -> tuple[MarginalReport, ...]:
        columns = self.plan.columns
        places, sizes = places_of(self.codes, columns), [column.size for column in columns]
        each, found = Fraction(self.people, len(self)), []
        for marginal in self.measured:
            cells = cell_places(places, marginal.columns, sizes)
            rows = np.bincount(cells, minlength=len(marginal.counts)).tolist()
            pairs = zip(rows, marginal.counts.tolist(), strict=True)
            apart = [abs(count * each - noisy) for count, noisy in pairs]
            names = tuple(columns[place].name for place in marginal.columns)
            mean = Fraction(sum(apart), len(apart))
            found.append(MarginalReport(names, len(apart), mean, max(apart), marginal.scale))
        return tuple(found)

    # Shapes -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """The rows, column by column, as plain values."""
        found = {}
        for place, each in enumerate(self.plan.columns):
            column, codes = each.column, self.codes[:, place]
            listed, at = np.unique(codes, return_inverse=True)
            keys = (column.keys or ()) if column.type == "text" else None
            plain = [
                plain_value(column, code if keys is None else keys[code])
                for code in listed.tolist()
            ]
            found[each.name] = [plain[one] for one in at.tolist()]
        return found

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `synthetic_from_json` is the inverse."""
        plan = self.plan
        return {
            "tacit synthetic": _VERSION,
            "table": self.schema.name,
            "person": self.schema.person if isinstance(self.schema.person, str) else None,
            "schema": write_schema(self.schema),
            "columns": [column.name for column in plan.columns],
            "bins": [column.as_json() for column in plan.columns],
            "epsilon": str(self.privacy.epsilon),
            "max_rows": plan.max_rows,
            "rounds": plan.mechanism.rounds,
            "tree": plan.mechanism.tree,
            "marginals": [list(each) for each in plan.mechanism.candidates],
            "public_people": plan.people,
            "measured": [
                {
                    "columns": list(each.columns),
                    "scale": str(each.scale),
                    "counts": each.counts.tolist(),
                }
                for each in self.measured
            ],
            "people": self.people,
            "codes": self.codes.T.tolist(),
            **covers_as_json(self.covers),
            **recorded_as_json(self.recorded),
        }

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file, which `load_synthetic` reads."""
        save_json(self.as_json(), path)

    def __repr__(self) -> str:
        return f"<Synthetic: {self._summary()}>"

    def _summary(self) -> str:
        names = ", ".join(column.name for column in self.plan.columns)
        covers = f"; {self.covers}" if self.covers else ""
        said = (
            f"{spaced(Fraction(len(self)))} rows of {names} for about "
            f"{spaced(Fraction(self.people))} people, {self.privacy}{covers}"
        )
        return with_since(said, self.recorded)

    _under = _summary

    @property
    def covers(self) -> str:
        """How much of each person the errors are about, in words; nothing if it is all of them."""
        return covers_of_rows(self.schema, self.plan.max_rows, "at random")

    def __str__(self) -> str:
        lines = [f"  {each}" for each in self.report[:_MOST_SHOWN]]
        return "\n".join([self._summary(), *lines])


# What it will be like, before it is paid ----------------------------------------------------------


@dataclass(frozen=True)
class SyntheticPlan(Printed):
    """What is measured, and how exactly: said before it is paid, from public values.

    How far the rows are from the truth elsewhere depends on the data, and is not known beforehand.
    """

    schema: Schema
    columns: tuple[BinnedColumn, ...]
    privacy: Privacy
    max_rows: int
    people: int | None
    rows: int
    mechanism: SyntheticMechanism

    @property
    def cells(self) -> int:
        """How many combinations of values there are."""
        return prod(column.size for column in self.columns)

    def error(self, columns: int = 1, beta: Number = "1/20") -> Fraction:
        """How far one measured count of a column, or of two, may be off, but with probability β.

        Accuracy: of columns one by one, and of the pairs that form a tree; a round measures others.
        """
        several = whole(columns, "columns")
        if several > 2 or several > len(self.columns):
            raise BadParameter("columns", as_given(columns), "the tree measures one column, or two")
        scale = self.mechanism.single_scale if several == 1 else self.mechanism.pair_scale
        return Fraction(error_steps(scale, beta))

    def round_error(self, beta: Number = "1/20") -> Fraction | None:
        """The same of what a round measures; None without rounds."""
        scale = self.mechanism.round_scale
        return Fraction(error_steps(scale, beta)) if scale else None

    def __str__(self) -> str:
        from tacit.analyst.alternatives import lines as as_lines

        columns, rounds = len(self.columns), self.mechanism.rounds
        names = ", ".join(column.name for column in self.columns)
        tree = f"{columns} column{'s' * (columns > 1)}, each count ± {spaced(self.error())}"
        if columns > 1 and self.mechanism.tree:
            pairs = f"{columns - 1} pair{'s' * (columns > 2)} that depend on each other"
            tree += f"; {pairs}, each count ± {spaced(self.error(2))}"
        lines = [
            f"Synthetic rows of {names}, {spaced(Fraction(self.cells))} cells, {self.privacy}",
            f"  rows      {spaced(Fraction(self.rows))}",
            f"  measured  {tree} (95 %)",
        ]
        error = self.round_error()
        if error is not None:
            lines.append(
                f"  rounds    {rounds} times what the rows have most wrong of "
                f"{len(self.mechanism.candidates)} marginals, each count ± {spaced(error)} (95 %)"
            )
        lines.append(f"  advice    {self._advice()}")
        return "\n".join([*lines, *as_lines(self.alternatives)])

    def _advice(self) -> str:
        if len(self.columns) < 3 and not self.mechanism.rounds:
            return "every pair is measured, and rounds have nothing to add"
        if self.people is None:
            return "open the table with people=... to be told whether rounds help"
        product = float(self.privacy.epsilon * self.people / self.max_rows)
        helps = product >= _ENOUGH
        where = f"εn = {show(product, 3)}, and {show(_ENOUGH)} was enough on a census table"
        chosen = "rounds" if self.mechanism.rounds else "the tree alone"
        return f"{'rounds' if helps else 'the tree alone'} ({where}); this is {chosen}"

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        from tacit.analyst.alternatives import Comparison

        others = Comparison(self.schema, self.privacy.epsilon, self.people, self.max_rows)
        columns = [column.column for column in self.columns]
        return (*others.for_cells(columns, but="synthetic"), *others.for_pairs(columns))


def plan_synthetic(
    schema: Schema,
    columns: Sequence[str],
    *,
    epsilon: Number,
    rows: int | None = None,
    marginals: Marginals | None = None,
    rounds: int | None = None,
    bins: Bins | None = None,
    max_rows: int | None = None,
    people: int | None = None,
    tree: bool = True,
) -> SyntheticPlan:
    """Choose the bins and the rounds; refuse, at no cost, what cannot be drawn."""
    cut, privacy = binned(schema, columns, bins), Privacy(positive(epsilon, "epsilon"))
    counted = rows_that_count(schema, max_rows)
    wanted = DEFAULT_ROWS if rows is None else whole(rows, "rows")
    if wanted > MOST_ROWS:
        raise Infeasible(
            f"{wanted} rows are too many: at most {MOST_ROWS} can be drawn. Nothing was spent."
        )
    candidates = _candidates(cut, marginals)
    if rounds is None:
        known = people is not None and privacy.epsilon * people >= _ENOUGH * counted
        useful = tree and (len(cut) > 2 or marginals is not None)
        chosen = min(_MOST_ROUNDS, len(candidates)) if known and useful else 0
    else:
        chosen = whole(rounds, "rounds", at_least=0)
        if chosen > 1000:
            raise BadParameter(
                "rounds", as_given(rounds), "give at most 1000: each takes a part of ε"
            )
    sizes = tuple(column.size for column in cut)
    mechanism = SyntheticMechanism(sizes, privacy.epsilon, counted, chosen, candidates, tree)
    return SyntheticPlan(
        schema, cut, privacy, max_rows=counted, people=people, rows=wanted, mechanism=mechanism
    )


def _candidates(
    columns: Sequence[BinnedColumn], marginals: Marginals | None
) -> tuple[tuple[int, ...], ...]:
    """The marginals that a round may choose, as places: by default all pairs."""
    if marginals is None:
        pairs = tuple(combinations(range(len(columns)), 2))
        return pairs or ((0,),)
    places = {column.name.lower(): place for place, column in enumerate(columns)}
    found = []
    if isinstance(marginals, str) or not isinstance(marginals, Sequence):
        raise BadParameter("marginals", as_given(marginals), "give a list of lists of columns")
    for names in marginals:
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise BadParameter("marginals", as_given(names), "give a list of columns for each")
        known = [places.get(name.lower()) if isinstance(name, str) else None for name in names]
        if None in known or len(set(known)) != len(known):
            raise BadParameter(
                "marginals", ", ".join(map(str, names)), "name some of the columns, none twice"
            )
        found.append(tuple(sorted(place for place in known if place is not None)))
    if not found or len(found) > _MOST_CANDIDATES:
        raise BadParameter("marginals", len(found), f"give 1 to {_MOST_CANDIDATES} of them")
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class SyntheticRows:
    """Synthetic rows, for `Table.release`.

    Privacy: (ε, 0).  No more than `max_rows` rows of a person count, chosen at random and without
    a look at anybody else's: see `SyntheticMechanism`.
    """

    names_tables: ClassVar[tuple[str, ...]] = ()

    plan: SyntheticPlan

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows, and where a person may have several a choice among them."""
        return needs_chosen_points(self.plan.schema)

    @property
    def cost(self) -> Cost:
        """(ε, 0), in the parts that are measured and chosen."""
        return self.plan.mechanism.cost

    @property
    def what(self) -> str:
        """Which columns."""
        return f"synthetic rows of {', '.join(column.name for column in self.plan.columns)}"

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        plan = self.plan
        return {
            "synthetic": [column.name for column in plan.columns],
            "bins": [column.as_json() for column in plan.columns],
            "epsilon": str(plan.privacy.epsilon),
            "rows": plan.rows,
            "rounds": plan.mechanism.rounds,
            "tree": plan.mechanism.tree,
            "marginals": [list(each) for each in plan.mechanism.candidates],
            "max_rows": plan.max_rows,
        }

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return repr(self.plan.mechanism)

    def write_release(self, released: Synthetic) -> dict[str, Any]:
        """Rows as they are kept."""
        return released.as_json()

    def read_release(self, fields: Mapping[str, Any]) -> Synthetic:
        """The inverse of `write_release`."""
        return synthetic_from_json(fields)

    def check(self, schema: Schema) -> None:
        """The columns and their values are those of this very table."""
        refuse_other_schema(self, self.plan.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Synthetic:
        """Measure, fit and draw."""
        plan = self.plan
        names = [column.name for column in plan.columns]
        points = chosen_counts(engine, names, plan.max_rows, coins).rows()
        support = max(plan.rows, SUPPORT) if plan.mechanism.rounds else plan.rows
        rows = places_of(points, plan.columns)
        measured, model = plan.mechanism.draw(rows, coins, support)
        places = model.draw(plan.rows, coins)
        codes = np.stack(
            [column.codes(places[:, at], coins) for at, column in enumerate(plan.columns)], axis=1
        )
        codes.flags.writeable = False
        return Synthetic(plan, measured, round(model.total), codes)


# Reading saved rows -------------------------------------------------------------------------------


def load_synthetic(path: str | Path) -> Synthetic:
    """Read what `Synthetic.save` wrote; a file that is not a complete one is refused."""
    return load_json(path, synthetic_from_json, "synthetic rows")


def synthetic_from_json(fields: Any) -> Synthetic:
    """What `Synthetic.as_json` wrote; anything else raises one of many errors."""
    if fields["tacit synthetic"] != _VERSION:
        raise ValueError
    table, person, people = fields["table"], fields["person"], fields["public_people"]
    if not isinstance(table, str) or not isinstance(person, str | None):
        raise TypeError
    schema = read_schema(
        fields["schema"], name=table, person=EACH_ROW if person is None else person
    )
    columns = tuple(
        _read_column(schema, name, starts)
        for name, starts in zip(fields["columns"], fields["bins"], strict=True)
    )
    privacy, max_rows = Privacy(fields["epsilon"]), whole(fields["max_rows"], "max_rows")
    mechanism = SyntheticMechanism(
        tuple(column.size for column in columns),
        privacy.epsilon,
        max_rows,
        whole(fields["rounds"], "rounds", at_least=0),
        tuple(map(tuple, fields["marginals"])),
        fields["tree"],
    )
    codes = _read_codes(fields["codes"], columns)
    people = None if people is None else whole(people, "people")
    plan = SyntheticPlan(
        schema, columns, privacy, max_rows, people, rows=len(codes), mechanism=mechanism
    )
    measured = tuple(_read_marginal(each, mechanism) for each in fields["measured"])
    people, since = whole(fields["people"], "people"), recorded_from_json(fields)
    return Synthetic(plan, measured, people, codes, since)


def _read_column(schema: Schema, name: str, starts: list[int] | None) -> BinnedColumn:
    plain = BinnedColumn.of(schema, name, None)
    if starts is None and plain.starts is None:
        return plain
    if starts is None or plain.starts is None:
        raise ValueError
    low, high = plain.column.range
    if starts[0] != low or starts[-1] > high or sorted(set(starts)) != starts:
        raise ValueError
    return BinnedColumn(plain.column, tuple(whole(start, "bins", at_least=low) for start in starts))


def _read_marginal(fields: Any, mechanism: SyntheticMechanism) -> Marginal:
    columns = tuple(fields["columns"])
    counts = np.array(fields["counts"], np.int64)
    if counts.shape != (prod(mechanism.sizes[place] for place in columns),):
        raise ValueError
    scale = positive(fields["scale"], "scale")
    if scale not in (mechanism.single_scale, mechanism.pair_scale, mechanism.round_scale):
        raise ValueError
    counts.flags.writeable = False
    return Marginal(columns, counts, scale)


def _read_codes(listed: Any, columns: Sequence[BinnedColumn]) -> Codes:
    found = np.array(listed, np.int64).T.copy()
    if found.ndim != 2 or found.shape[1] != len(columns) or not 0 < len(found) <= MOST_ROWS:
        raise ValueError
    if len(places_of(found, columns)) != len(found):
        raise ValueError
    for at, each in enumerate(columns):
        if (
            each.column.type == "text"
            and not 0 <= found[:, at].min() <= found[:, at].max() < each.size
        ):
            raise ValueError
    found.flags.writeable = False
    return found
