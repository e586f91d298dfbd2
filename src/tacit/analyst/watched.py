"""A watched model: every question gets a number, and only surprises cost.

Answers come from a public model of the table.  Each is first compared with the truth, privately:
if the model is off by more than T′, that is a surprise, the value is told from the gap, and the
model is fitted to it.  Surprises are on record before they are told, as the ⊤ of a stream are, and
the model is rebuilt from the record when a watched model is resumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import finalize

from tacit.analyst.public_model import PublicModel
from tacit.analyst.question_class import predicate_of
from tacit.book.answer import Answer, Recorded
from tacit.book.watching import WatchState
from tacit.errors import EngineFailed, LedgerDamaged, TacitError
from tacit.numbers import exact, plain, spaced
from tacit.support import Uncopyable
from tacit.tables.prepared import given_by_name
from tacit.tables.question import Predicate, Question
from tacit.tables.question_key import question_key
from tacit.tables.show import predicate as show_predicate

if TYPE_CHECKING:
    from types import TracebackType

    from tacit.analyst.versions import TableVersions, Version
    from tacit.analyst.watched_plan import WatchedPlan
    from tacit.budget import Lease
    from tacit.tables.prepared import Askable, AskableWithValues, Read

Source = Literal["model", "measured", "unwatched"]


def as_watch_secret(state: WatchState) -> bytes:
    """The state as it is stored.  It is secret."""
    return json.dumps([state.up, state.down, state.tops]).encode()


def from_watch_secret(secret: bytes) -> WatchState:
    """The inverse of `as_watch_secret`.  An error does not quote it."""
    with suppress(ValueError, TypeError, RecursionError):
        up, down, tops = json.loads(secret)
        if all(type(number) is int for number in (up, down, tops)) and tops >= 0:
            return WatchState(up, down, tops)
    raise LedgerDamaged("the stored state of a watched model cannot be read: the file is damaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedAnswer:
    """A number, where it came from, and within which bounds the truth lies.

    "model": the model's own answer, compared with the truth and not found wrong.  "measured": a
    surprise, told from the data.  "unwatched": the model's answer after all surprises were used;
    nothing is promised about it.
    """

    value: Fraction
    source: Source
    surprises_left: int
    below: Fraction | None = None  # the truth is at least value − below, at 95 %
    above: Fraction | None = None  # and at most value + above
    recorded: Recorded | None = None

    @property
    def interval(self) -> tuple[Fraction, Fraction] | None:
        """Bounds on the true count, at 95 %; None if it is unwatched."""
        if self.below is None or self.above is None:
            return None
        return max(self.value - self.below, Fraction(0)), self.value + self.above

    def as_json(self) -> dict[str, Any]:
        """As it leaves a process: numbers for people, and beside them what is exact."""
        since, interval = self.recorded, self.interval
        parts = {"value": self.value, "below": self.below, "above": self.above}
        return {
            "value": plain(self.value),
            "source": self.source,
            "interval": None if interval is None else [plain(end) for end in interval],
            "surprises_left": self.surprises_left,
            "recorded": None if since is None else {"at": since.at, "as_of": since.as_of},
            "exact": {name: str(part) for name, part in parts.items() if part is not None},
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> WatchedAnswer:
        """The inverse of `as_json`."""
        since, numbers = fields["recorded"], fields["exact"]
        known = {name: exact(numbers[name], name) for name in ("below", "above") if name in numbers}
        return cls(
            value=exact(numbers["value"], "value"),
            source=fields["source"],
            surprises_left=fields["surprises_left"],
            recorded=None if since is None else Recorded(since["at"], since["as_of"]),
            **known,
        )

    def __str__(self) -> str:
        if self.interval is None:
            return f"{spaced(self.value)} (unwatched)"
        low, high = map(spaced, self.interval)
        said = f"{spaced(self.value)} ({low} to {high}, 95 %), {self.source}"
        return said if self.recorded is None else f"{said}, {self.recorded}"


class WatchedModel(Uncopyable):
    """An open watched model, from ``table.watched_model(...)``.

    Privacy: all its answers together keep what was charged at its opening, for the model and for
    the watch.  The model is public, and so is whatever it answers.
    """

    def __init__(
        self,
        plan: WatchedPlan,
        versions: TableVersions,
        coins: Any,
        model: PublicModel,
        *,
        name: str,
        lease: Lease | None,
        records: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._plan = plan
        self._versions = versions
        self._coins = coins
        self._model = model
        self._name = name
        self._lease = lease
        self._error = plan.error()  # found once: it takes longer than a question
        self._earlier: dict[str, WatchedAnswer] = {}
        self._state = WatchState(0, 0) if lease is None else from_watch_secret(lease.secret)
        for key, record in records.items():
            self._learn(key, record)
        if lease is not None:
            finalize(self, _suspend_quietly, lease)

    @property
    def plan(self) -> WatchedPlan:
        """What was said before it was paid."""
        return self._plan

    @property
    def name(self) -> str:
        """The name to resume it by."""
        return self._name

    @property
    def surprises_left(self) -> int:
        """How many more may come."""
        return 0 if self._lease is None else self._lease.tops_left

    @property
    def watched(self) -> bool:
        """Whether answers are still compared with the truth."""
        return self._lease is not None and not self._lease.halted

    # Asking -------------------------------------------------------------------------------

    def ask(
        self,
        question: Askable,
        /,
        *,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> WatchedAnswer:
        """A number for a count of people, such as "age >= 60 and smoker".

        A surprise that is on record is told again, for the same label of the table.  A parameter
        with the name of an option is given in ``params``, where any may be given.
        """
        with self._versions.used() as version:
            read = version.reader.read(question, given_by_name(parameters, params))
            where = self._model.where(read)
            if (known := self._recorded(read.question, version)) is not None:
                return known
            if not self.watched:
                return self._unwatched(where)
            assert self._lease is not None
            with self._lease.turn(evaluating=True) as turn:
                if (known := self._recorded(read.question, version)) is not None:
                    return known  # another thread was faster
                (value,) = self._values(version, [read.question])
                turn.evaluated()
                return self._decide(read, where, value, version)

    def ask_all(
        self,
        questions: Askable | Iterable[AskableWithValues],
        /,
        *,
        params: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Iterator[WatchedAnswer]:
        """A number for each of a list of questions, or of a GROUP BY, with one pass over the data.

        All questions are read and checked first; then answers come one by one, as from `ask`.
        """
        with self._versions.used() as version:
            reads = version.reader.read_all(questions, given_by_name(parameters, params))
            wheres = [self._model.where(read) for read in reads]
            values: Sequence[int] = [0] * len(reads)
            if self.watched:
                assert self._lease is not None
                with self._lease.turn(evaluating=True):
                    values = self._values(version, [read.question for read in reads])
        return self._answer_all(list(zip(reads, wheres, values, strict=True)), version)

    def _answer_all(
        self, asked: Sequence[tuple[Read, Predicate, int]], version: Version
    ) -> Iterator[WatchedAnswer]:
        for read, where, value in asked:
            known = self._recorded(read.question, version)
            if known is not None:
                yield known
            elif self.watched:
                assert self._lease is not None
                with self._lease.turn():
                    told = self._recorded(read.question, version)
                    told = self._decide(read, where, value, version) if told is None else told
                yield told
            else:
                yield self._unwatched(where)

    def _values(self, version: Version, questions: Sequence[Question]) -> list[int]:
        """Inside a turn: the true counts.  They are secret."""
        with suppress(Exception):
            return version.engine.values(questions)
        raise EngineFailed(
            "answering failed; the engine's own message is withheld because it may quote data. "
            "Since a failure may depend on the data, the surprise that was reserved is lost",
            advice="table.resume_watched_model(...) goes on with what is left",
        )

    def _decide(self, read: Read, where: Predicate, value: int, version: Version) -> WatchedAnswer:
        """Inside a turn: compare, and record a surprise before anybody sees it."""
        assert self._lease is not None
        guess = self._model.count(where)
        answer, side, state = self._plan.watch.step(self._state, value, guess, self._coins)
        if not side:
            return WatchedAnswer(
                value=Fraction(guess),
                source="model",
                surprises_left=self._lease.tops_left,
                below=self._error,
                above=self._error,
            )
        key = question_key(read.question, None, version.as_of)
        shown = show_predicate(where, read.schema)
        self._lease.record_top(
            {**answer.as_json(), "text": read.text, "where": shown, "side": str(side)},
            question_key=key,
            secret=as_watch_secret(state),
            as_of=version.as_of,
        )
        self._state = state
        return replace(self._learn(key, self._lease.answers[key]), recorded=None)

    def _recorded(self, question: Question, version: Version) -> WatchedAnswer | None:
        if not self._earlier:
            return None
        known = self._earlier.get(question_key(question, None, version.as_of))
        return None if known is None else replace(known, surprises_left=self.surprises_left)

    def _unwatched(self, where: Predicate) -> WatchedAnswer:
        return WatchedAnswer(
            value=Fraction(self._model.count(where)), source="unwatched", surprises_left=0
        )

    def _learn(self, key: str, record: Mapping[str, str]) -> WatchedAnswer:
        """Take a surprise on record into the model, and remember what is told about it."""
        try:
            answer, side = Answer.from_json(record), int(record["side"])
            interval, value = answer.interval(), answer.value
            if interval is None or value is None or side not in (1, -1):
                raise ValueError
            where = predicate_of(record["where"], self._plan.schema)
        except (TacitError, ValueError, TypeError, LookupError, ArithmeticError):
            raise LedgerDamaged(
                "a surprise on record cannot be read: the file is damaged"
            ) from None
        told = max(side * value, Fraction(0))
        ends = sorted(side * end for end in interval)
        self._model.learn(where, round(told))
        at, as_of = ("", None) if self._lease is None else self._lease.recorded[key]
        self._earlier[key] = WatchedAnswer(
            value=told,
            source="measured",
            surprises_left=self.surprises_left,
            below=told - ends[0],
            above=max(ends[1] - told, Fraction(0)),
            recorded=Recorded(at, as_of) if at else None,
        )
        return self._earlier[key]

    # Leaving ------------------------------------------------------------------------------

    def suspend(self) -> None:
        """Leave it for later: ``table.resume_watched_model(name, budget=...)`` goes on."""
        if self._lease is not None:
            self._lease.suspend()

    def close(self) -> None:
        """End the watch for ever.  Nothing is refunded."""
        if self._lease is not None:
            self._lease.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.suspend()

    def __repr__(self) -> str:
        return (
            f"<WatchedModel {self._name!r} of {self._plan.schema.name}: {self.surprises_left} of "
            f"{self._plan.watch.surprises} surprises left>"
        )


def _suspend_quietly(lease: Lease) -> None:
    with suppress(Exception):
        lease.suspend()
