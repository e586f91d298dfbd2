"""What a server holds, and what it answers: tables, a budget and tokens.

Nothing here knows of HTTP.  Each function answers one kind of request for whoever presents a
token; all but the looks at tokens run in threads.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from threading import Lock
from typing import TYPE_CHECKING

from tacit.analyst import plan
from tacit.analyst.open_tables import follow, put_together, same_people, seen_with
from tacit.analyst.table import Table, open_table
from tacit.budget import Budget
from tacit.budget.accountants import bounded
from tacit.budget.sqlite_together import open_for_threads
from tacit.errors import BadParameter, ConditionNotMet, NotCovered
from tacit.numbers import exact
from tacit.privacy import Cost
from tacit.server import messages
from tacit.server.config import Limits, ServedTable, ServerConfig, Timing
from tacit.server.held import LiveStreams
from tacit.server.log import LogLine
from tacit.server.paid import PaidIndex
from tacit.server.problems import refused
from tacit.server.refreshed import LabelFile
from tacit.server.rights import (
    permit,
    permit_all_tables,
    reaches,
    sees_all_shares,
    tables_of_stream,
)
from tacit.server.served_head import ServedHead
from tacit.server.spent import SpentIndex
from tacit.server.stopped import StoppedFile
from tacit.server.tokens import TokenFile, TokenRecord, utc_now
from tacit.server.underway import Underway
from tacit.support import Closing
from tacit.tables.schema.schema import write_schema
from tacit.wire import stream_summary, summary, to_json

if TYPE_CHECKING:
    from tacit.budget import Share, StreamState
    from tacit.tables.language.show import Statement

_REFUSALS = 200  # that are remembered
_PATIENCE_SECONDS = 1.0  # with questions that are being answered when a server ends


class Service(Closing):
    """Tables, their budget and the tokens of those who may ask."""

    def __init__(
        self, tables: dict[str, Table], budget: Budget, tokens: TokenFile, limits: Limits
    ) -> None:
        self.tables = tables
        self._views: dict[tuple[str, frozenset[str]], Table] = {}  # for tokens of some tables
        self._seeing = Lock()
        self.budget = budget
        self.tokens = tokens
        self.limits = limits
        self.streams = LiveStreams()
        self.stopped = StoppedFile(tokens.path)
        self.underway = Underway(budget)
        self.paid = PaidIndex(budget)
        self.spent = SpentIndex(budget)
        self.refusals: deque[tuple[TokenRecord | None, LogLine]] = deque(maxlen=_REFUSALS)
        self.served_head: ServedHead | None = None
        self.labels: LabelFile | None = None
        self.served: dict[str, ServedTable] = {}  # as the server's file has them
        self.timing = Timing()  # which also says how much of a batch leaves together
        self.place = ""  # where the budget lies: told to nobody
        self.answered: Counter[tuple[str, int]] = Counter()  # by what was asked, and the status

    @classmethod
    def open(cls, config: ServerConfig) -> Service:
        """Open everything that a file names; if something cannot be, nothing stays open."""
        with ExitStack() as opened:
            budget = opened.enter_context(open_for_threads(config.budget))
            budget.verify()  # all of it: much is spent before a server is started again
            covered = budget.people
            for served in config.tables:
                if served.name not in covered:
                    raise NotCovered(
                        f"{budget.place} covers {', '.join(covered)}, not {served.name!r}",
                        advice="tacit budget cover adds a table",
                    )
            labels = LabelFile(config.tokens)
            tables = {
                each.name: opened.enter_context(_opened(each, labels.label(each)))
                for each in config.tables
            }
            for together in same_people(tables, covered):
                put_together(together)
            tokens = TokenFile(config.tokens)
            service = cls(tables, budget, tokens, config.limits)
            _ = tokens.records, service.stopped.records  # a damaged file is told now
            service.place = budget.place
            service.labels, service.served = labels, {each.name: each for each in config.tables}
            service.served_head = opened.enter_context(ServedHead(config.head, budget))
            service.served_head.begin()
            opened.pop_all()
            return service

    def close(self) -> None:
        """Suspend the streams, and close the tables and the budget.

        If a question is still being answered after a while, its stream loses the reserved ⊤, as in
        a crash, and the budget is left to the process, which is about to end.
        """
        all_left = self.streams.suspend_all(_PATIENCE_SECONDS)
        for table in self.tables.values():
            table.close()
        if all_left:
            self.note_head()
            self.budget.close()
        if self.served_head is not None:
            self.served_head.close()

    def note_head(self) -> None:
        """Note the end of the history, before anything leaves that was paid for."""
        if self.served_head is not None:
            self.served_head.note()

    def check_name(self, name: str, what: str) -> None:
        """Refuse a name that is too long."""
        if len(name) > self.limits.name:
            given = f"a text of {len(name)} characters"
            raise BadParameter(what, given, f"a name has at most {self.limits.name}")

    def check_questions(self, questions: Sequence[messages.QuestionSent]) -> None:
        """Refuse more of them than a request may bring."""
        if len(questions) > self.limits.questions:
            raise refused(413, f"a request brings at most {self.limits.questions} questions")

    def table(self, name: str, who: TokenRecord) -> Table:
        """A table that the token may ask; whether there are others is nobody's business."""
        self.check_name(name, "table")
        if name not in self.tables or not who.may_ask(name):
            raise NotCovered(
                f"there is no table {name!r} that this token may ask",
                advice="/v1/tables lists those that it may",
            )
        permit(self, who, [name])
        return self.seen(name, who)

    def seen(self, name: str, who: TokenRecord) -> Table:
        """A table, whose questions may name the tables beside it that the token may ask, too."""
        stopped = {each.name for each in self.stopped.records if each.kind == "table"}
        others = [each for each in self.tables if who.may_ask(each) and each not in stopped]
        return self._view(name, others)

    def asked_by(self, stream: StreamState) -> Table:
        """The table of a stream, whose questions may name what they could when it was opened."""
        if stream.table not in self.tables:
            raise NotCovered(f"there is no table {stream.table!r} here any more")
        return self._view(stream.table, tables_of_stream(stream))

    def label_of(self, name: str) -> str | None:
        """The label of a table as it is served now; None if it has none, or is not served."""
        table = self.tables.get(name)
        return None if table is None else table.as_of

    def _view(self, name: str, others: Iterable[str]) -> Table:
        """A table, whose questions may name those of the tables beside it that are among these."""
        table, among = self.tables[name], set(others)
        beside = [other.name for other in table.schema.beside]
        allowed = frozenset(among.intersection(beside))
        if len(allowed) == len(beside):
            return table
        with self._seeing:
            if (name, allowed) not in self._views:
                seen = [self.tables[each] for each in beside if each in allowed]
                self._views[name, allowed] = seen_with(table, seen)
            return follow(self._views[name, allowed])


def _opened(served: ServedTable, as_of: str | None) -> Table:
    return open_table(
        served.source,
        person=served.person,
        name=served.name,
        people=served.people,
        schema=served.schema,
        table=served.table,
        memory_limit=served.memory,
        as_of=as_of,
        spill_folder=served.spill_folder,
        spill=served.spill,
        shards=served.shards,
        grows_by=served.grows_by,
    )


# What can be asked for ------------------------------------------------------------------------


def list_tables(service: Service, who: TokenRecord) -> messages.TableList:
    """The tables that the token may ask, with their public schemas."""
    return messages.TableList(
        [table_facts(service.seen(name, who)) for name in service.tables if who.may_ask(name)]
    )


def table_facts(table: Table) -> messages.TableFacts:
    """What is public about a table."""
    person = table.schema.person
    return messages.TableFacts(
        name=table.name,
        person=person if isinstance(person, str) else None,
        schema=write_schema(table.schema),
        people=table.people,
        as_of=table.as_of,
        cannot=sorted(table.engine.cannot),
        beside=[other.name for other in table.schema.beside],
    )


def check(service: Service, who: TokenRecord, asked: messages.Check) -> messages.Statements:
    """What is promised about each question, or why it is refused; it costs nothing."""
    table = service.table(asked.table, who)
    service.check_questions(asked.questions)
    return messages.Statements([to_json(_checked(table, each)) for each in asked.questions])


def _checked(table: Table, asked: messages.QuestionSent) -> Statement:
    return table.check(asked.question, params=given(asked.parameters))


def given(sent: Mapping[str, messages.Value]) -> dict[str, object]:
    """Parameters as a method of the local table takes them."""
    return {
        name: [_value(name, part) for part in value]
        if isinstance(value, list)
        else _value(name, value)
        for name, value in sent.items()
    }


def _value(name: str, sent: messages.Scalar) -> object:
    return exact(sent.exact, name) if isinstance(sent, messages.Exact) else sent


def find_plan(service: Service, who: TokenRecord, asked: messages.PlanOf) -> messages.PlanFound:
    """Which recipe for a stream, with which error, or which ε it takes; public numbers only."""
    names = ("questions", "epsilon", "alpha", "beta", "kind", "rounds")
    told = {name: getattr(asked, name) for name in names}
    if asked.algorithm != "above_threshold":
        told |= {"at_most": asked.at_most, "delta": asked.delta}
    elif (asked.at_most, asked.delta) != (1, 0):
        raise BadParameter(
            "algorithm", asked.algorithm, "it has neither at_most nor delta: leave them out"
        )
    if asked.algorithm == "numeric_sparse":
        told["values"] = asked.values
    elif asked.values != "gap":
        raise BadParameter("algorithm", asked.algorithm, "it tells no values: leave them out")
    found: plan.Plan = getattr(plan, asked.algorithm)(**told)
    prices = {}
    for option in found.options:
        with suppress(ConditionNotMet):  # zCDP cannot charge what is known with a δ only
            amount = service.budget.accountant.charge(option.recipe.cost)
            prices[option.name] = amount.as_json()
    return messages.PlanFound(to_json(found), prices)


def find_price(service: Service, who: TokenRecord, asked: messages.PriceOf) -> messages.Price:
    """What one release with this ε costs, and whether it fits; nothing is set aside for it."""
    price = service.budget.accountant.charge(Cost.pure(asked.epsilon))
    own = _own(service.budget.shares, who)
    return messages.Price(
        price=price.as_json(),
        left=None if own is None else own.left.as_json(),
        fits=own is not None and bounded(price, own.spent).fits_in(own.left),
    )


def show_budget(service: Service, who: TokenRecord) -> messages.BudgetFacts:
    """The totals, the token's own share, and for a steward of all tables everybody's."""
    told = summary(service.budget)
    return messages.BudgetFacts(
        promise=messages.PromiseFacts(str(told.promise.epsilon), str(told.promise.delta)),
        accountant=told.accountant,
        covers=[name for name in told.covers if who.may_ask(name)],
        people={name: group for name, group in told.people.items() if who.may_ask(name)},
        whole=to_json(told.whole),
        own=None if (own := _own(told.shares, who)) is None else to_json(own),
        shares=[to_json(share) for share in (told.shares if sees_all_shares(who) else ())],
    )


def _own(shares: tuple[Share, ...], who: TokenRecord) -> Share | None:
    """The share that the token draws from; None if it draws from none."""
    found = (share for share in shares if share.analyst == who.share)
    return None if who.share is None else next(found, None)


def list_streams(service: Service, who: TokenRecord) -> messages.StreamList:
    """An analyst's own streams; all of the tables that a steward may see."""
    return messages.StreamList([to_json(stream_summary(each)) for each in seen(service, who)])


def seen(service: Service, who: TokenRecord) -> list[StreamState]:
    """The streams that a token may see, as they stood when the last answer left."""
    return [
        stream
        for stream in service.budget.streams(up_to=service.underway.shown())
        if who.may_ask(*tables_of_stream(stream))
        and (who.role == "steward" or (who.share is not None and stream.analyst == who.share))
    ]


def list_tokens(service: Service, who: TokenRecord) -> messages.TokenList:
    """All tokens that were ever made, by name, as far as a steward may know of them."""
    now = utc_now()
    return messages.TokenList(
        [
            messages.TokenFacts(
                name=one.name,
                role=one.role,
                tables=None if one.tables is None else list(one.tables),
                share=one.share,
                made=one.made,
                expires=one.expires,
                status=one.status(now),
            )
            for one in service.tokens.records
            if reaches(who, one)
        ]
    )


def show_metrics(service: Service, who: TokenRecord) -> str:
    """Counters for Prometheus: nothing in them depends on the data, unless it was released.

    There are no durations, and neither memory nor processor time: they tell how much data there is.
    """
    permit_all_tables(who, "metrics")
    shown = service.budget.streams(up_to=service.underway.shown())
    now, states = utc_now(), Counter(state.status for state in shown)
    lines = ["# TYPE tacit_requests_total counter"]
    for (what, status), count in sorted(service.answered.items()):
        lines.append(f'tacit_requests_total{{what="{what}",status="{status}"}} {count}')
    lines.append("# TYPE tacit_streams gauge")
    lines += [f'tacit_streams{{status="{name}"}} {states[name]}' for name in sorted(states)]
    lines.append("# TYPE tacit_tokens gauge")
    tokens = Counter(one.status(now) for one in service.tokens.records)
    lines += [f'tacit_tokens{{status="{name}"}} {tokens[name]}' for name in sorted(tokens)]
    lines.append("# TYPE tacit_budget gauge")
    whole = service.budget.whole
    for what, amount in (("promised", whole.limit), ("spent", whole.spent), ("left", whole.left)):
        for unit, number in amount.values:
            lines.append(f'tacit_budget{{what="{what}",unit="{unit}"}} {float(number)!r}')
    return "\n".join([*lines, ""])
