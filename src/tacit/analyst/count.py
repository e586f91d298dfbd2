"""A noisy count or sum: the Laplace mechanism on the answer to one question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.analyst.history import AnsweredBy
from tacit.analyst.paying import refuse_other_schema, tagged
from tacit.book.laplace import Estimate, LaplaceMechanism
from tacit.numbers import Number
from tacit.privacy import Cost
from tacit.tables.language.key_notes import notes
from tacit.tables.language.question_key import question_key
from tacit.tables.language.tree import covers, tables_named

if TYPE_CHECKING:
    from tacit.book.coins import Coins
    from tacit.tables.engine.engine import Engine
    from tacit.tables.language.prepared import Read
    from tacit.tables.schema.schema import Schema


@dataclass(frozen=True)
class NoisyCount:
    """The answer to one question with discrete Laplace noise, for `Table.release`.

    Privacy: (ε, 0), with noise of the question's own sensitivity (Theorem 3.6, on its grid).
    """

    needs: ClassVar[tuple[str, ...]] = ()

    read: Read
    noise: LaplaceMechanism = field(init=False)

    def __init__(self, read: Read, *, epsilon: Number) -> None:
        noise = LaplaceMechanism(
            epsilon=epsilon, sensitivity=read.question.sensitivity, grid=read.question.grid
        )
        object.__setattr__(self, "read", read)
        object.__setattr__(self, "noise", noise)

    @property
    def cost(self) -> Cost:
        """(ε, 0), as one pure part."""
        return Cost.pure(self.noise.privacy.epsilon)

    @property
    def what(self) -> str:
        """The question, on one line."""
        return f"count: {self.read.text}"

    @property
    def names_tables(self) -> frozenset[str]:
        """The other tables in the question."""
        return tables_named(self.read.question.terms)

    @property
    def request(self) -> dict[str, Any]:
        """All that is asked."""
        question = question_key(self.read.question, None, None)
        return {"count": question, "epsilon": str(self.noise.privacy.epsilon)}

    @property
    def drawn_by(self) -> str:
        """With which noise."""
        return repr(self.noise)

    def write_release(self, released: Estimate) -> dict[str, Any]:
        """An estimate as it is kept."""
        return tagged("estimate", released.as_json())

    def read_release(self, fields: Mapping[str, Any]) -> Estimate:
        """The inverse of `write_release`."""
        return Estimate.from_json(fields)

    def with_facts(self, released: Estimate, *, at: str, on_record: bool | None) -> Estimate:
        """An estimate that says what it is about."""
        privacy = self.noise.privacy
        at = at if released.recorded is None else released.recorded.at
        about = AnsweredBy(self.read.schema.name, privacy).about(self.read, at)
        said: dict[str, Any] = {"covers": about.covers, "notes": self.notes}
        return replace(released, about=about, on_record=on_record, **said)

    def check(self, schema: Schema) -> None:
        """Refuse another table than the one that the question was read for."""
        refuse_other_schema(self, self.read.schema, schema)

    def draw(self, engine: Engine, coins: Coins) -> Estimate:
        """Answer the question and add noise."""
        (steps,) = engine.values([self.read.question])
        said: dict[str, Any] = {"covers": covers(self.read.question), "notes": self.notes}
        return replace(self.noise.draw(steps, coins), **said)

    @property
    def notes(self) -> tuple[str, ...]:
        """What may be a mistake, though it can be asked: a value that is no declared key."""
        return notes(self.read.question, self.read.schema)
