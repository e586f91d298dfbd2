"""What requests and responses look like; the OpenAPI document is made from these types.

Values of Tacit's own (statements, plans, shares, streams, errors) are objects of `tacit.wire`:
their first key says what they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from tacit.server.tokens import Role
from tacit.wire.stopped import Stoppable

VERSIONS = (1,)
"""The versions of the protocol that this server speaks."""

Wire = Annotated[dict[str, Any], Meta(description="An object as tacit.wire writes it.")]
Number = Annotated[
    str | int | float,
    Meta(description="Read exactly: 1, 0.1, '1/2' or '1e-9'.", extra_json_schema={"example": 1}),
]
Key = Annotated[
    str, Meta(description="The same key, with the same body, brings the same response again.")
]


# Requests: an unknown field is refused, since it would be meant


class Exact(Struct, forbid_unknown_fields=True):
    """A number that is no decimal fraction, such as 1/3."""

    exact: str


Scalar = str | int | float | bool | Exact | None
Value = Scalar | list[Scalar]


class QuestionSent(Struct, forbid_unknown_fields=True):
    """A question, with values for the parameters in it."""

    question: str
    parameters: dict[str, Value] = field(default_factory=dict)


class Check(Struct, forbid_unknown_fields=True):
    """What is promised about some questions to a table, or why they are refused."""

    table: str
    questions: Annotated[list[QuestionSent], Meta(min_length=1)]


class PlanOf(Struct, forbid_unknown_fields=True):
    """What a stream is planned for: epsilon, to learn the error, or alpha, to learn the ε."""

    algorithm: Literal["above_threshold", "sparse", "numeric_sparse"]
    questions: Number
    at_most: Number = 1
    epsilon: Number | None = None
    alpha: Number | None = None
    delta: Number = 0
    beta: Number = "1/20"
    kind: Literal["counts", "directed", "any"] = "counts"
    values: Literal["gap", "fresh"] = "gap"  # of numeric_sparse
    rounds: Number = 1


class PriceOf(Struct, forbid_unknown_fields=True):
    """A count, a sum, a histogram or a small database with this ε."""

    epsilon: Number


class CountOf(Struct, forbid_unknown_fields=True):
    """A noisy answer to one question."""

    key: Key
    table: str
    question: str
    epsilon: Number
    parameters: dict[str, Value] = field(default_factory=dict)


class SumOf(Struct, forbid_unknown_fields=True):
    """A noisy sum of a column with declared bounds, over the rows that satisfy a predicate."""

    key: Key
    table: str
    column: str
    epsilon: Number
    where: str | None = None
    parameters: dict[str, Value] = field(default_factory=dict)


class HistogramOf(Struct, forbid_unknown_fields=True):
    """A noisy count for every declared cell of some columns."""

    key: Key
    table: str
    columns: Annotated[list[str], Meta(min_length=1)]
    epsilon: Number
    max_rows: Number = 1


class RangesOf(Struct, forbid_unknown_fields=True):
    """Every prefix, interval and quantile of a column, or its running count."""

    key: Key
    table: str
    column: str
    epsilon: Number
    max_rows: Number | None = None


class TopOf(Struct, forbid_unknown_fields=True):
    """The n largest cells of a GROUP BY, or of a list of questions."""

    key: Key
    table: str
    n: Number
    questions: QuestionSent | list[QuestionSent]
    epsilon: Number
    delta: Number = 0
    counts_epsilon: Number | None = None


class OrderedOf(Struct, forbid_unknown_fields=True):
    """All prefixes, or all intervals, of one column."""

    kind: Literal["prefixes", "intervals"]
    column: str


class SmallDbOf(Struct, forbid_unknown_fields=True):
    """A small database that answers a class of questions."""

    key: Key
    table: str
    questions: OrderedOf | list[str]
    epsilon: Number
    alpha: Number | None = None
    rows: Number | None = None
    max_rows: Number = 1


class OpenOf(Struct, forbid_unknown_fields=True):
    """A stream to open; without a name it gets one."""

    key: Key
    table: str
    algorithm: Literal["above_threshold", "sparse", "numeric_sparse"]
    threshold: Number
    epsilon: Number
    at_most: Number = 1
    delta: Number = 0
    name: str | None = None
    kind: Literal["counts", "directed", "any"] = "counts"
    sensitivity: Number = 1
    grid: Number = 1
    questions: Number = 10_000
    beta: Number = "1/20"
    recipe: str = "best"
    numeric: bool = False
    values: Literal["gap", "fresh"] = "gap"


class ResumeOf(Struct, forbid_unknown_fields=True):
    """A stream to go on with, of this table."""

    table: str
    stream: str


class StreamNamed(Struct, forbid_unknown_fields=True):
    """A stream of one's own."""

    stream: str


class AskOf(Struct, forbid_unknown_fields=True):
    """A question to a stream; a threshold of its own replaces the stream's."""

    key: Key
    stream: str
    question: str
    parameters: dict[str, Value] = field(default_factory=dict)
    threshold: Number | None = None


class AskAllOf(Struct, forbid_unknown_fields=True):
    """A batch for a stream: a list of questions, or a GROUP BY with one for each cell.

    The first ``skip`` of them are left out.
    """

    key: Key
    stream: str
    questions: QuestionSent | Annotated[list[QuestionSent], Meta(min_length=1)]
    threshold: Number | None = None
    skip: Annotated[int, Meta(ge=0)] = 0


class StopOf(Struct, forbid_unknown_fields=True):
    """What is to be refused from now on; why is for stewards to read."""

    kind: Stoppable
    name: str
    reason: Annotated[str, Meta(max_length=1000)] = ""


class GoOnWith(Struct, forbid_unknown_fields=True):
    """What may go on."""

    kind: Stoppable
    name: str


def questions_in(asked: object) -> int:
    """How many questions a request brings, for the clock and the log."""
    match asked:
        case (
            Check(questions=list() as several)
            | TopOf(questions=list() as several)
            | AskAllOf(questions=list() as several)
        ):
            return len(several)
        case CountOf() | SumOf() | TopOf() | AskOf() | AskAllOf():
            return 1
    return 0


class AnswersAfter(Struct, forbid_unknown_fields=True):
    """Answers that were paid for by entries of the history after this one, oldest first."""

    after: Annotated[int, Meta(ge=0)] = 0
    most: Annotated[int, Meta(ge=1, le=1000)] = 100


class MoreBudget(Struct, forbid_unknown_fields=True):
    """By how much the token's own share should grow, and why."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None


class Decision(Struct, forbid_unknown_fields=True):
    """What a steward says to a request for more."""

    number: Annotated[int, Meta(ge=1)]
    approve: bool
    reason: Annotated[str, Meta(max_length=1000)] = ""


# Responses


class Healthy(Struct):
    """The server is there."""

    status: Literal["ok"] = "ok"


class Versions(Struct):
    """The versions of the protocol that the server speaks."""

    versions: list[int]


class TableFacts(Struct):
    """What is public about a table."""

    name: str
    person: str | None  # None: each row is a person
    schema: str  # as TOML
    people: int | None
    as_of: str | None
    cannot: list[str]  # what the table's engine cannot answer


class TableList(Struct):
    """The tables that the token may ask."""

    tables: list[TableFacts]


class Statements(Struct):
    """What is promised about each question."""

    statements: list[Wire]


Units = Annotated[
    dict[str, str], Meta(description="Exact numbers by unit: epsilon and delta, or rho.")
]


class PlanFound(Struct):
    """A plan, and what the budget would charge for each of its recipes.

    A recipe without a price cannot be charged to this budget.
    """

    plan: Wire
    prices: dict[str, Units]


class Price(Struct):
    """What the budget would charge, and whether that fits into the token's own share now."""

    price: Units
    left: Units | None  # None: the token draws from no share
    fits: bool


class PromiseFacts(Struct):
    """An (ε, δ), exactly."""

    epsilon: str
    delta: str


class BudgetFacts(Struct):
    """What was promised to people and what is left: in all, and of the token's own share."""

    promise: PromiseFacts
    accountant: str
    covers: list[str]
    whole: Wire
    own: Wire | None
    shares: list[Wire]  # for a steward


class StreamList(Struct):
    """Streams: an analyst's own, or all for a steward."""

    streams: list[Wire]


class Released(Struct):
    """What was paid for: an estimate, a histogram, ranges, a top or a release."""

    released: Wire


class Told(Struct):
    """The answer to a question of a stream."""

    answer: Wire


class StreamOpened(Struct):
    """A stream that can be asked: what was fixed when it was opened."""

    name: str
    table: str
    binding: Annotated[
        dict[str, str], Meta(description="What the promise depends on, as it is stored.")
    ]


class StreamFacts(Struct):
    """How a stream stands now."""

    stream: Wire


class RecordedTops(Struct):
    """Every answer above the threshold that is on record, as a history."""

    recorded: Wire


class AnswerList(Struct):
    """Answers that were paid for: an analyst's own, what was told for a viewer, or all."""

    answers: list[Wire]
    more: bool  # whether there are more after the last of these


class RequestTold(Struct):
    """A request for more budget, as it stands."""

    request: Wire


class RequestList(Struct):
    """Requests for more budget: an analyst's own, or all for a steward."""

    requests: list[Wire]


class StoppedList(Struct):
    """All that is stopped now."""

    stopped: list[Wire]


class TokenFacts(Struct):
    """What is known about a token: all but the token."""

    name: str
    role: Role
    tables: list[str] | None
    share: str | None
    made: str
    expires: str | None
    status: str


class TokenList(Struct):
    """All tokens that were ever made."""

    tokens: list[TokenFacts]


class Problem(Struct, rename={"form": "tacit error"}):
    """What is wrong, as RFC 9457 says it, and as tacit.wire does: the class and its words."""

    type: str
    title: str
    status: int
    detail: str
    form: Literal[1]
    error: str
    message: str
    advice: str
    exit_code: int
    parameter: str | UnsetType = UNSET  # these three for a BadParameter
    given: str | UnsetType | None = UNSET
    allowed: str | UnsetType = UNSET
