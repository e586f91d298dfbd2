"""Every range of one ordered column, for one ε: a tree of noisy counts, and what it answers.

``table.ranges("age", ...)`` answers how many people have an age up to v, between u and v, and which
age is the median; ``table.running("day", ...)`` is the same tree read as a running count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.analyst.histogram import CellSum, prefix_error, sum_error
from tacit.analyst.paying import refuse_other_schema
from tacit.analyst.question_class import declared_column, declared_domain, predicate_of
from tacit.analyst.tabular import (
    SavedTabular,
    covers_as_json,
    covers_of_rows,
    load_json,
    plain_value,
    rows_that_count,
    save_json,
    with_facts,
    with_intervals,
    with_since,
    writing,
)
from tacit.book.laplace import Estimate
from tacit.book.range_tree import MOST_VALUES, RangeTree, best_tree, rising
from tacit.book.recorded import Recordable, Recorded, recorded_as_json, recorded_from_json
from tacit.errors import Infeasible, QuestionRefused
from tacit.numbers import Number, probability, show, spaced, whole
from tacit.privacy import Cost, Privacy
from tacit.support import Printed, check_can_plot
from tacit.tables.engine.points import CountedPoints, chosen_counts, needs_chosen_points
from tacit.tables.engine.public_rows import PublicRows, rows_schema
from tacit.tables.engine.universe import columns_of, count_elements
from tacit.tables.language.key_notes import notes_on
from tacit.tables.language.tree import People, Range
from tacit.tables.schema.codes import Code
from tacit.tables.schema.schema import EACH_ROW, Column, Schema, read_schema, write_schema

if TYPE_CHECKING:
    from tacit.analyst.alternatives import Alternative
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine

_VERSION = 1
_MOST_SHOWN = 12


# What is asked: a column in the order of its values -----------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderedColumn:
    """A column with declared values that have an order, and which of them a question means."""

    schema: Schema
    column: Column

    @classmethod
    def of(cls, schema: Schema, name: str) -> OrderedColumn:
        """Refuse text, and a domain that cannot be listed."""
        column = declared_column(schema, name)
        if column.type == "text":
            raise QuestionRefused(
                f"{column.name} is text, and its values have no order to count in; "
                f"table.histogram({column.name!r}, ...) counts each of them"
            )
        declared_domain(column)
        if (size := column.domain_size or 0) > MOST_VALUES:
            raise Infeasible(
                f"{column.name} has {size} declared values, and a tree of counts has at most "
                f"{MOST_VALUES}: declare narrower bounds or a coarser grid, or take "
                "small_db(tacit.prefixes(...)) for a domain of any size. Nothing was spent."
            )
        return cls(schema, column)

    @property
    def name(self) -> str:
        """The column's."""
        return self.column.name

    @property
    def values(self) -> Sequence[int]:
        """The declared values as codes, rising."""
        domain = declared_domain(self.column)
        return domain if isinstance(domain, range) else sorted(domain)  # type: ignore[arg-type]

    def counts(self, points: CountedPoints) -> NDArray[np.int64]:
        """How many points each value has.  Secret."""
        counts = count_elements(points, [self.column])
        domain = declared_domain(self.column)
        if isinstance(domain, range):
            return counts
        return counts[np.argsort(np.array(domain, np.int64))]

    def place(self, question: str) -> tuple[int, int]:
        """The range of places that a question such as "age between 30 and 39" means."""
        predicate, values = predicate_of(question, self.schema), self.values
        if isinstance(predicate, Range) and predicate.column == self.name:
            low, high = predicate.low, predicate.high
            start = 0 if low is None else bisect_left(values, low)
            stop = len(values) if high is None else bisect_right(values, high)
            return start, max(start, stop)
        if set(columns_of(predicate)) == {self.name}:
            codes = np.array(values, np.int64)[:, np.newaxis]
            rows = PublicRows(rows_schema(self.schema, [self.column]), codes)
            inside = np.flatnonzero(rows.matches(predicate))
            if len(inside) == 0:
                return 0, 0
            if inside[-1] - inside[0] == len(inside) - 1:
                return int(inside[0]), int(inside[-1]) + 1
        raise QuestionRefused(
            f"{question}\nthis answers ranges of {self.name}, such as {self.name} <= "
            f"{self.column.literal(values[len(values) // 2])}, and nothing else"
        )


# What is released --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeCount(Estimate):
    """A count of a range, with the error bar of its weighted sum of noises."""

    noises: Fraction  # the sum of the squares of the weights, none of which exceeds 1 in size

    def error(self, beta: Number = "1/20") -> Fraction:
        """How far the count may be off, except with probability β."""
        return sum_error(self.noise_scale, self.noises, beta) * self.grid

    def as_json(self) -> dict[str, Any]:
        """As an estimate, and of how many noises."""
        fields = Estimate.as_json(self)
        return {**fields, "exact": {**fields["exact"], "noises": str(self.noises)}}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> RangeCount:
        """The inverse of `as_json`."""
        return cls(**cls._read(fields), noises=Fraction(fields["exact"]["noises"]))


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile, and two values between which the true one lies.

    >>> from datetime import date
    >>> print(Quantile(Fraction(1, 2), 38, 36, 41, Fraction(1, 20)))
    38 (36 to 41, 95 %)
    """

    share: Fraction
    value: Any
    low: Any
    high: Any
    beta: Fraction

    def __str__(self) -> str:
        return f"{self.value} ({self.low} to {self.high}, {show(100 * (1 - self.beta))} %)"


@dataclass(frozen=True, eq=False, repr=False)
class Ranges(Recordable, SavedTabular):
    """A tree of noisy counts: it answers every prefix, interval and quantile of one column.

    Everything here was paid for and is public: it may be printed, saved and published.
    """

    plan: RangePlan
    measured: tuple[NDArray[np.int64], ...]
    recorded: Recorded | None = None
    """If it was told again and is about an older label: since when, and which."""

    @property
    def privacy(self) -> Privacy:
        """What it cost."""
        return self.plan.privacy

    @property
    def schema(self) -> Schema:
        """Of the table it came from."""
        return self.plan.ordered.schema

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the noise of each node."""
        return self.plan.noise_scale

    # Answering ----------------------------------------------------------------------------

    def count(self, question: str) -> RangeCount | CellSum:
        """How many there are in a range, such as "age <= 39" or "age between 30 and 39".

        Accuracy: unbiased, with the least variance of all weighted sums of what was measured.
        """
        asked, schema = predicate_of(question, self.schema), self.schema
        found = self._count(*self.plan.ordered.place(question))
        return replace(found, notes=notes_on([People(asked)], schema))

    def _count(self, start: int, stop: int) -> RangeCount | CellSum:
        value = Fraction(round(self._prefixes[stop] - self._prefixes[start]))
        scale, privacy, noises = self.noise_scale, self.privacy, self.plan.noises(start, stop)
        told: dict[str, Any] = {"value": value, "noise_scale": scale, "privacy": privacy}
        told |= {"covers": self.covers, "recorded": self.recorded}
        if isinstance(noises, int):
            return CellSum(**told, cells=noises)
        return RangeCount(**told, noises=noises)

    @cached_property
    def _prefixes(self) -> list[float]:
        found: list[float] = self.plan.tree.prefixes(self.measured).tolist()
        return found

    @property
    def curve(self) -> NDArray[np.int64]:
        """For each value the count up to it: the nearest such numbers that never fall.

        Accuracy: all of them together are within `worst_error`.
        """
        return self._curve

    @cached_property
    def _curve(self) -> NDArray[np.int64]:
        limit = self.plan.people and self.plan.people * self.plan.max_rows
        counts = np.rint(self._prefixes).astype(np.int64)
        found = rising(counts, *([] if limit is None else [limit]))
        return np.rint(found).astype(np.int64)[1:]

    def worst_error(self, beta: Number = "1/20") -> Fraction:
        """How far any count up to a value may be off, but with probability β for all of them."""
        return self.plan.worst_error(beta)

    def quantile(self, share: Number, beta: Number = "1/20") -> Quantile:
        """The least value that this share of the rows reaches or stays below, such as "1/2".

        Accuracy: the true one lies from ``low`` to ``high``, except with probability β.
        """
        part, allowed = probability(share, "share"), probability(beta, "beta")
        values, prefixes = self.plan.ordered.values, np.array(self._prefixes)
        plan, total = self.plan, prefixes[-1]
        # The true quantile is one value, whichever it is: three counts must hold, those up to it,
        # up to the one before it, and of all.
        one = sum_error(self.noise_scale, plan.most_noises, allowed / 3)
        every = sum_error(self.noise_scale, plan.noises(0, len(values)), allowed / 3)
        goal, slack = float(part) * total, one + float(part) * every
        may_reach = prefixes[1:] + slack >= goal
        may_be_first = prefixes[:-1] - slack < goal
        found = np.flatnonzero(may_reach & may_be_first)
        low, high = (found[0], found[-1]) if len(found) else (0, len(values) - 1)
        at = int(np.searchsorted(self.curve, float(part) * self.curve[-1]))
        return Quantile(
            part,
            self._plain(values[int(min(max(at, low), high))]),
            self._plain(values[int(low)]),
            self._plain(values[int(high)]),
            allowed,
        )

    def _plain(self, code: Code) -> Any:
        return plain_value(self.plan.ordered.column, code)

    # Shapes -------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, list[Any]]:
        """The values, how many are up to each, between what all lie together, what that covers."""
        ordered = self.plan.ordered
        name = "up_to" if ordered.name != "up_to" else "up_to_"
        shown = {
            ordered.name: [self._plain(code) for code in ordered.values],
            name: self.curve.tolist(),
        }
        shown = with_intervals(shown, {name: self.intervals()})
        return with_facts(shown, self.covers, self.recorded)

    def intervals(self, beta: Number = "1/20") -> list[tuple[Fraction, Fraction]]:
        """Between what the counts up to each value lie, all but with probability β together."""
        error = self.worst_error(beta)
        return [(count - error, count + error) for count in self.curve.tolist()]

    def plot(self, path: str | Path) -> None:
        """Draw the count up to each value, and how far it may be off, to a file."""
        with writing(path):
            _draw(self, Path(path))

    def as_json(self) -> dict[str, Any]:
        """Everything, in plain JSON; `ranges_from_json` is the inverse."""
        plan = self.plan
        schema, tree = plan.ordered.schema, plan.tree
        return {
            "tacit ranges": _VERSION,
            "table": schema.name,
            "person": schema.person if isinstance(schema.person, str) else None,
            "schema": write_schema(schema),
            "column": plan.ordered.name,
            "epsilon": str(plan.privacy.epsilon),
            "people": plan.people,
            "max_rows": plan.max_rows,
            "branching": tree.branching,
            "counts": [level.tolist() for level in self.measured],
            **covers_as_json(self.covers),
            **recorded_as_json(self.recorded),
        }

    def save(self, path: str | Path) -> None:
        """Write everything to a JSON file; `load_ranges` reads it again."""
        save_json(self.as_json(), path)

    def __repr__(self) -> str:
        return f"<Ranges of {self.plan.ordered.name}: {self._summary()}>"

    def _summary(self) -> str:
        error = spaced(self.worst_error())
        covers = f"; {self.covers}" if self.covers else ""
        values = f"{len(self.curve)} values, each count up to one ± {error} (95 %)"
        return with_since(f"{values}, {self.privacy}{covers}", self.recorded)

    _under = _summary

    @property
    def covers(self) -> str:
        """How much of each person the errors are about, in words; nothing if it is all of them."""
        return covers_of_rows(self.schema, self.plan.max_rows, "at random")

    def __str__(self) -> str:
        columns = self.to_dict()
        every = max(len(self.curve) // _MOST_SHOWN, 1)
        (name, values), (_, counts), *_ = columns.items()
        shown = [
            (str(value), spaced(Fraction(count)))
            for value, count in zip(values[::-every], counts[::-every], strict=True)
        ][::-1]
        lines = [(name, "up to it"), *shown]
        wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
        said = [f"{value.ljust(wide[0])}  {count.rjust(wide[1])}" for value, count in lines]
        return "\n".join([*said, self._summary()])


def _draw(ranges: Ranges, path: Path) -> None:
    check_can_plot(path)
    from matplotlib.figure import Figure

    (name, values), (_, counts), *_ = ranges.to_dict().items()
    error = int(ranges.worst_error())
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.fill_between(
        values,
        [max(count - error, 0) for count in counts],
        [count + error for count in counts],
        step="post",
        color="tab:blue",
        alpha=0.15,
        label="all of it, 95 %",
    )
    axes.step(values, counts, where="post", color="tab:blue", label="released")
    axes.set(xlabel=name, ylabel=f"how many up to this {name}")
    axes.legend(loc="lower right")
    axes.set_title(repr(ranges)[1:-1], fontsize=9)
    figure.savefig(path, dpi=120)


# What it will be like, before it is paid ----------------------------------------------------------


@dataclass(frozen=True)
class RangePlan(Printed):
    """Which tree, and how far its answers will be off: said before it is paid, from public values.

    The errors hold whatever the data are.
    """

    ordered: OrderedColumn
    privacy: Privacy
    max_rows: int
    people: int | None
    tree: RangeTree

    @property
    def cost(self) -> Cost:
        """(ε, 0): each level is a part, since a row lies in one node of each."""
        levels = self.tree.levels
        return Cost.pure(self.privacy.epsilon / levels, times=levels)

    @property
    def noise_scale(self) -> Fraction:
        """The scale of the noise of each node."""
        return self.tree.scale(self.privacy.epsilon, self.max_rows)

    def noises(self, start: int, stop: int) -> int | Fraction:
        """Of how many noises a range of places is the sum; a fraction if they have weights."""
        return stop - start if self.tree.levels == 1 else self.tree.noises(start, stop)

    @property
    def most_noises(self) -> int | Fraction:
        """The same for the worst prefix."""
        return self.tree.values if self.tree.levels == 1 else self.tree.worst_prefix

    def error(self, question: str, beta: Number = "1/20") -> Fraction:
        """How far the count of one range will be off, except with probability β."""
        noises = self.noises(*self.ordered.place(question))
        return Fraction(sum_error(self.noise_scale, noises, beta))

    def worst_error(self, beta: Number = "1/20") -> Fraction:
        """How far any count up to a value will be off, but with probability β for all of them."""
        if self.tree.levels == 1:
            return Fraction(prefix_error(self.noise_scale, self.tree.values, beta))
        each = probability(beta, "beta") / self.tree.values
        return Fraction(sum_error(self.noise_scale, self.most_noises, each))

    def __str__(self) -> str:
        from tacit.analyst.alternatives import lines as as_lines

        tree, name, scale = self.tree, self.ordered.name, self.noise_scale
        one = sum_error(scale, self.most_noises, "1/20")
        single = sum_error(scale, self.noises(0, 1), "1/20")
        shape = "one count a value" if tree.levels == 1 else f"{tree.levels} levels of runs"
        if tree.levels > 1:
            shape += f" of {tree.branching}"
        lines = [
            f"Ranges of {name}, {tree.values} values, {self.privacy}",
            f"  tree      {shape}, noise of scale {show(scale)} on each count",
            f"  error     {name} up to a value: ± {spaced(Fraction(one))} at worst, all of them "
            f"together ± {spaced(self.worst_error())} (95 %)",
            f"            a single value: ± {spaced(Fraction(single))} (95 %)",
        ]
        return "\n".join([*lines, *as_lines(self.alternatives, self.worst_error())])

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """What else could answer the same, for the same ε, and how far off it would be."""
        from tacit.analyst.alternatives import Comparison

        ordered = self.ordered
        others = Comparison(ordered.schema, self.privacy.epsilon, self.people, self.max_rows)
        return others.for_ranges(ordered.column, but="ranges")


def plan_ranges(
    schema: Schema, column: str, *, epsilon: Number, max_rows: int | None, people: int | None
) -> RangePlan:
    """Choose the tree; refuse, at no cost, what cannot be drawn."""
    ordered, privacy = OrderedColumn.of(schema, column), Privacy(epsilon)
    rows = rows_that_count(schema, max_rows)
    plan = RangePlan(ordered, privacy, rows, people, best_tree(ordered.column.domain_size or 0))
    plan.tree.scale(privacy.epsilon, rows)  # which refuses noise that is too wide
    return plan


def refuse_without_steps(column: Column) -> None:
    """Refuse a running count over what has no steps."""
    if column.type not in ("date", "integer"):
        raise QuestionRefused(
            f"{column.name} is {column.type}: a running count is over dates or whole numbers; "
            f"table.ranges({column.name!r}, ...) counts other values in order"
        )


@dataclass(frozen=True)
class NoisyRanges:
    """A tree of noisy counts over one column, for `Table.release`.

    Privacy: (ε, 0).  No more than `max_rows` rows of a person count, chosen at random and without
    a look at anybody else's, each in one node of each level: see `RangeTree.measure`.
    """

    names_tables: ClassVar[tuple[str, ...]] = ()

    plan: RangePlan
    title: str = "ranges"

    @property
    def needs(self) -> tuple[str, ...]:
        """The rows, and where a person may have several a choice among them."""
        return needs_chosen_points(self.plan.ordered.schema)

    @property
    def cost(self) -> Cost:
        """(ε, 0), in as many parts as the tree has levels."""
        return self.plan.cost

    @property
    def what(self) -> str:
        """Which column."""
        return f"{self.title} of {self.plan.ordered.name}"

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        asked = {"epsilon": str(self.plan.privacy.epsilon), "max_rows": self.plan.max_rows}
        return {self.title: self.plan.ordered.name, **asked}

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return f"{self.plan.tree!r}, Laplace noise of scale {self.plan.noise_scale} on each node"

    def write_release(self, released: Ranges) -> dict[str, Any]:
        """Ranges as they are kept."""
        return released.as_json()

    def read_release(self, fields: Mapping[str, Any]) -> Ranges:
        """The inverse of `write_release`."""
        return ranges_from_json(fields)

    def check(self, schema: Schema) -> None:
        """The column and its values are those of this very table."""
        refuse_other_schema(self, self.plan.ordered.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Ranges:
        """Count the rows of each value, and measure the tree."""
        plan = self.plan
        points = chosen_counts(engine, [plan.ordered.name], plan.max_rows, coins)
        measured = plan.tree.measure(
            plan.ordered.counts(points),
            epsilon=plan.privacy.epsilon,
            coins=coins,
            rows_per_person=plan.max_rows,
        )
        for level in measured:
            level.flags.writeable = False
        return Ranges(plan, measured)


# Reading saved ranges -----------------------------------------------------------------------------


def load_ranges(path: str | Path) -> Ranges:
    """Read saved ranges; a file that is not such a thing, or not whole, is refused."""
    return load_json(path, ranges_from_json, "a tree of ranges")


def ranges_from_json(fields: Any) -> Ranges:
    """What `Ranges.as_json` wrote; anything else raises one of many errors."""
    if fields["tacit ranges"] != _VERSION:
        raise ValueError
    table, person, people = fields["table"], fields["person"], fields["people"]
    if not isinstance(table, str) or not isinstance(person, str | None):
        raise TypeError
    schema = read_schema(
        fields["schema"], name=table, person=EACH_ROW if person is None else person
    )
    ordered = OrderedColumn.of(schema, fields["column"])
    listed: list[list[Any]] = fields["counts"]
    if not all(type(count) is int for level in listed for count in level):
        raise TypeError
    tree = RangeTree(len(ordered.values), whole(fields["branching"], "branching"), len(listed))
    if tree.sizes != tuple(map(len, listed)):
        raise ValueError
    plan = RangePlan(
        ordered,
        Privacy(fields["epsilon"]),
        whole(fields["max_rows"], "max_rows"),
        None if people is None else whole(people, "people"),
        tree,
    )
    tree.scale(plan.privacy.epsilon, plan.max_rows)
    measured = tuple(np.array(level, np.int64) for level in listed)
    return Ranges(plan, measured, recorded_from_json(fields))
