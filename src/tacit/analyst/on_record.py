"""What is on record, and where it is in a batch: found by the keys that the record itself compares.

A record refuses an answer to a question that it has under its key.  So whatever is on record must
be found before a coin is drawn, however a question is spelt and however it is reached: it is
looked up by that key and by nothing else, inside the turn in which the coin is drawn.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeVar, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tacit.book.recorded import Recorded
from tacit.tables.language.prepared import CellReads
from tacit.tables.language.question_key import KeyForm, forms_of, keys_of_cells, question_key

if TYPE_CHECKING:
    from tacit.tables.language.prepared import Read
    from tacit.tables.language.tree import Question

_HEAD = slice(-16, None)  # of a key: what two different ones share by a rare chance only


@runtime_checkable
class MayBeTold(Protocol):
    """What is told, which may say that it is on record: answers, blocks and releases."""

    @property
    def recorded(self) -> Recorded | None:
        """Since when, and about which label."""
        ...

    def _marked(self, since: Recorded) -> Self:
        """The same, marked so."""
        ...


class Paid(Protocol):
    """What was paid for."""

    @property
    def at(self) -> str:
        """When (UTC)."""
        ...

    @property
    def as_of(self) -> str | None:
        """The label that the table had."""
        ...


Told = TypeVar("Told", bound=MayBeTold)


def as_told_then(told: Told, paid: Paid, as_of: str | None) -> Told:
    """What was told under a key, for a table that now has this label.

    If it is about an older one it says so, as what is on record does.
    """
    if told.recorded is not None or paid.as_of == as_of:
        return told
    return told._marked(Recorded(paid.at, paid.as_of))


class UnderWay(NamedTuple):
    """A question as it is asked: read, at a threshold, about the version with this label."""

    read: Read
    limit: Fraction | None
    as_of: str | None

    @property
    def key(self) -> str:
        """The key under which its answer is recorded."""
        return question_key(self.read.question, self.limit, self.as_of)


class BatchUnderWay(Sequence[UnderWay]):
    """Questions that are asked together, at one threshold, about one version."""

    def __init__(self, reads: Sequence[Read], limit: Fraction | None, as_of: str | None) -> None:
        self.reads, self.limit, self.as_of = reads, limit, as_of
        self._heads: dict[KeyForm, NDArray[np.uint64]] = {}

    def __len__(self) -> int:
        return len(self.reads)

    @overload
    def __getitem__(self, place: int) -> UnderWay: ...
    @overload
    def __getitem__(self, place: slice) -> BatchUnderWay: ...
    def __getitem__(self, place: int | slice) -> UnderWay | BatchUnderWay:
        if isinstance(place, slice):
            return BatchUnderWay(self.reads[place], self.limit, self.as_of)
        return UnderWay(self.reads[place], self.limit, self.as_of)

    def some(self, places: Sequence[int]) -> BatchUnderWay:
        """Only the questions at these places."""
        if len(places) == len(self):
            return self
        chosen = BatchUnderWay([self.reads[place] for place in places], self.limit, self.as_of)
        chosen._heads = {form: heads[places] for form, heads in self._heads.items()}
        return chosen

    def heads(self, form: KeyForm) -> NDArray[np.uint64]:
        """A part of each question's key: there may be a million, so the whole is not kept."""
        if form not in self._heads:
            heads = (int(key[_HEAD], 16) for key in self._keys(form))
            self._heads[form] = np.fromiter(heads, np.uint64, len(self))
        return self._heads[form]

    def _keys(self, form: KeyForm) -> Iterator[str]:
        if isinstance(self.reads, CellReads):
            batch, places = self.reads.batch, self.reads.places
            return keys_of_cells(form, batch, places, self.limit, self.as_of)
        return (form(read.question, self.limit, self.as_of) for read in self.reads)


class OnRecord:
    """Questions whose answers are on record: ``answers`` has them by key, and may grow."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        self.answers = answers
        self.forms = forms_of(answers)  # what is recorded from now on has the newer form

    def key_of(self, question: Question, limit: Fraction | None, as_of: str | None) -> str | None:
        """The key under which a question's answer is on record; None if it is not."""
        if self.answers:
            for form in self.forms:
                if (key := form(question, limit, as_of)) in self.answers:
                    return key
        return None


class RecordedPlaces:
    """Where in a batch are questions whose answers are on record, while the record grows."""

    def __init__(self, record: OnRecord, batch: BatchUnderWay) -> None:
        self._record, self._batch = record, batch
        self._ready = False
        self._seen = 0  # of the record
        self._found: list[tuple[int, str]] = []  # places with their keys, in order

    @property
    def ready(self) -> bool:
        """Whether `after` has what it needs."""
        return self._ready or not self._record.answers

    def get_ready(self) -> None:
        """Before a turn, since it may take long, and an interrupt must cost nothing."""
        if not self.ready:
            for form in self._record.forms:
                self._batch.heads(form)
            self._ready = True

    def after(self, at: int) -> tuple[int, str | None]:
        """Inside a turn, when ready: the first such place from ``at`` on, and the key."""
        if len(self._record.answers) > self._seen:
            self._look_for(list(islice(self._record.answers, self._seen, None)))
        index = bisect_left(self._found, (at, ""))
        return self._found[index] if index < len(self._found) else (len(self._batch), None)

    def _look_for(self, keys: Sequence[str]) -> None:
        """Find the places of what has been recorded since the last look."""
        wanted = set(keys)
        heads = np.array([int(key[_HEAD], 16) for key in keys], np.uint64)
        for form in self._record.forms:
            for place in np.flatnonzero(np.isin(self._batch.heads(form), heads)).tolist():
                read, limit, as_of = self._batch[place]
                if (key := form(read.question, limit, as_of)) in wanted:
                    insort(self._found, (place, key))
        self._seen += len(keys)
