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


# Requests


class Request(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is sent.  An unknown field is refused, since it would be meant.

    A key stands for a request without what it leaves to its defaults: so a field that is added one
    day, with a default, leaves the keys that were used before as they are.
    """


class Exact(Request):
    """A number that is not a decimal fraction, such as 1/3."""

    exact: str


Scalar = str | int | float | bool | Exact | None
Value = Scalar | list[Scalar]


class QuestionSent(Request):
    """A question, with values for the parameters in it."""

    question: str
    parameters: dict[str, Value] = field(default_factory=dict)


class Check(Request):
    """Questions to check: what is promised about them, or why they are refused."""

    table: str
    questions: Annotated[list[QuestionSent], Meta(min_length=1)]


class PlanOf(Request):
    """A stream to plan: give epsilon to learn the error, or alpha to learn the ε."""

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


class PriceOf(Request):
    """The price of a count, a sum or a histogram with this ε; other releases cost no more."""

    epsilon: Number


class CountOf(Request):
    """A noisy answer to one question."""

    key: Key
    table: str
    question: str
    epsilon: Number
    max_rows: Number | None = None
    parameters: dict[str, Value] = field(default_factory=dict)


class SumOf(Request):
    """A noisy sum of a column with declared bounds, over the rows that satisfy a predicate."""

    key: Key
    table: str
    column: str
    epsilon: Number
    where: str | None = None
    parameters: dict[str, Value] = field(default_factory=dict)


class HistogramOf(Request):
    """A noisy count for every declared cell of some columns."""

    key: Key
    table: str
    columns: Annotated[list[str], Meta(min_length=1)]
    epsilon: Number
    max_rows: Number | None = None


class QueryOf(Request):
    """A SELECT of several aggregates, with a row for every declared cell."""

    key: Key
    table: str
    query: str
    epsilon: Number
    delta: Number = 0
    weights: list[Number] | None = None
    max_rows: Number | None = None
    max_cells: Number | None = None
    at_most: Number | None = None
    parameters: dict[str, Value] = field(default_factory=dict)


class RangesOf(Request):
    """Every prefix, interval and quantile of a column, or its running count."""

    key: Key
    table: str
    column: str
    epsilon: Number
    max_rows: Number | None = None


class TopOf(Request):
    """The n largest cells of a GROUP BY, or of a list of questions."""

    key: Key
    table: str
    n: Number
    questions: QuestionSent | list[QuestionSent]
    epsilon: Number
    delta: Number = 0
    counts_epsilon: Number | None = None
    max_rows: Number | None = None


class SyntheticOf(Request):
    """Invented rows in some columns; the options are those of the local table."""

    key: Key
    table: str
    columns: Annotated[list[str], Meta(min_length=1)]
    epsilon: Number
    rows: Number | None = None
    marginals: list[list[str]] | None = None
    rounds: Number | None = None
    bins: dict[str, int | list[Scalar]] | None = None
    max_rows: Number | None = None


class OrderedOf(Request):
    """All prefixes, or all intervals, of one column."""

    kind: Literal["prefixes", "intervals"]
    column: str


class SmallDbOf(Request):
    """A small database that answers a class of questions."""

    key: Key
    table: str
    questions: OrderedOf | list[str]
    epsilon: Number
    alpha: Number | None = None
    rows: Number | None = None
    max_rows: Number | None = None
    certificate_epsilon: Number | None = None


class OpenOf(Request):
    """A stream to open; without a name, the server gives it one."""

    key: Key
    table: str
    algorithm: Literal["above_threshold", "sparse", "numeric_sparse"]
    threshold: Number
    epsilon: Number
    at_most: Number = 1
    least_scale: Number | None = None  # in place of at_most: each ⊤ has a price
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
    rounds: Number = 1


class ResumeOf(Request):
    """A stream of this table to resume."""

    table: str
    stream: str


class StreamNamed(Request):
    """One of the analyst's own streams."""

    stream: str


class AskOf(Request):
    """A question to a stream; its own threshold, if given, replaces the stream's.

    With ``below``, ⊤ means that the value is at most the threshold.  ``scale`` is the scale of the
    noise, for a stream in which each ⊤ has a price.
    """

    key: Key
    stream: str
    question: str
    parameters: dict[str, Value] = field(default_factory=dict)
    threshold: Number | None = None
    below: bool = False
    scale: Number | None = None


class AskAllOf(Request):
    """A batch for a stream: a list of questions, or a GROUP BY with one for each cell.

    ``only`` selects some of them by position, counted from 0; of those, the first ``skip`` are left
    out.  ``again`` marks the batch as one of the rounds that the stream was opened for.
    ``descending`` marks it as one of the rounds at ever smaller scales: number ``round_number``.
    """

    key: Key
    stream: str
    questions: QuestionSent | Annotated[list[QuestionSent], Meta(min_length=1)]
    threshold: Number | None = None
    scale: Number | None = None
    skip: Annotated[int, Meta(ge=0)] = 0
    below: bool = False
    again: bool = False
    descending: bool = False
    round_number: Annotated[int, Meta(ge=0)] = 0
    only: list[Annotated[int, Meta(ge=0)]] | None = None


class ModelSent(Request):
    """Public rows for a watched model: codes of declared columns, and the people of each row.

    The code of a text is its position among the keys, counted from 0.
    """

    columns: Annotated[list[str], Meta(min_length=1)]
    codes: Annotated[list[list[int]], Meta(min_length=1)]
    people: list[float]


class WatchOf(Request):
    """A model that answers every count with a number; the options are those of the local table."""

    key: Key
    table: str
    epsilon: Number
    surprises: Number = 20
    model: Literal["synthetic", "independent"] | ModelSent = "synthetic"
    columns: list[str] | None = None
    bins: dict[str, int | list[Scalar]] | None = None
    max_rows: Number | None = None
    questions: Number = 10_000
    beta: Number = "1/20"
    name: str | None = None


class ResumeWatchedOf(Request):
    """A watched model of this table to resume; send again a model that was sent when opening it."""

    table: str
    stream: str
    model: ModelSent | None = None


class AskWatchedOf(Request):
    """A count of people that a watched model answers."""

    key: Key
    stream: str
    question: str
    parameters: dict[str, Value] = field(default_factory=dict)


class AskAllWatchedOf(Request):
    """A batch for a watched model: a list of questions, or a GROUP BY with one for each cell.

    The first ``skip`` are left out.
    """

    key: Key
    stream: str
    questions: QuestionSent | Annotated[list[QuestionSent], Meta(min_length=1)]
    skip: Annotated[int, Meta(ge=0)] = 0


class RefreshOf(Request):
    """The label of a table's next version; ``whole`` reads all rows of one that grows."""

    table: str
    as_of: Annotated[str, Meta(min_length=1, max_length=200)]
    whole: bool = False


class StopOf(Request):
    """What to refuse from now on; stewards can read the reason."""

    kind: Stoppable
    name: str
    reason: Annotated[str, Meta(max_length=1000)] = ""


class GoOnWith(Request):
    """What to allow again."""

    kind: Stoppable
    name: str


def questions_in(asked: object) -> int:
    """How many questions a request brings, for the clock and the log."""
    match asked:
        case (
            Check(questions=list() as several)
            | TopOf(questions=list() as several)
            | AskAllOf(questions=list() as several)
            | AskAllWatchedOf(questions=list() as several)
        ):
            return len(several)
        case CountOf() | SumOf() | QueryOf() | TopOf() | AskOf() | AskAllOf():
            return 1
        case AskWatchedOf() | AskAllWatchedOf():
            return 1
    return 0


class AnswersAfter(Request):
    """Paid answers whose entries in the history come after this one, oldest first."""

    after: Annotated[int, Meta(ge=0)] = 0
    most: Annotated[int, Meta(ge=1, le=1000)] = 100


class MoreBudget(Request):
    """By how much the token's own share should grow, and why."""

    reason: Annotated[str, Meta(min_length=1, max_length=1000)]
    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None


class Decision(Request):
    """A steward's decision on a request for a larger share."""

    number: Annotated[int, Meta(ge=1)]
    approve: bool
    reason: Annotated[str, Meta(max_length=1000)] = ""


# Responses


class Healthy(Struct):
    """The server is running."""

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
    beside: list[str] = field(default_factory=list)  # tables that questions about it may name


class TableList(Struct):
    """The tables that the token may ask about."""

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
    """What was promised to people and what is left, in total and of the token's own share."""

    promise: PromiseFacts
    accountant: str
    covers: list[str]
    people: dict[str, str]  # those of the tables that are about other people, and who they are
    whole: Wire
    own: Wire | None
    shares: list[Wire]  # for a steward


class StreamList(Struct):
    """Streams: an analyst's own; for a steward, all."""

    streams: list[Wire]


class Released(Struct):
    """What was paid for: an estimate, a query's result, a histogram, ranges, a top or a release."""

    released: Wire


class Told(Struct):
    """The answer to a question of a stream, or of a watched model."""

    answer: Wire


class StreamOpened(Struct):
    """A stream that is ready to be asked, and what was fixed when it was opened."""

    name: str
    table: str
    binding: Annotated[
        dict[str, str], Meta(description="What the promise depends on, as it is stored.")
    ]


class StreamFacts(Struct):
    """The current state of a stream."""

    stream: Wire


class RecordedTops(Struct):
    """Every recorded answer above the threshold, as a history."""

    recorded: Wire


class AnswerList(Struct):
    """Paid answers: an analyst's own; for a viewer, all released; for a steward, all."""

    answers: list[Wire]
    more: bool  # whether there are more after the last of these


class RequestTold(Struct):
    """A request for more budget, and its current state."""

    request: Wire


class RequestList(Struct):
    """Requests for more budget: an analyst's own; for a steward, all."""

    requests: list[Wire]


class StoppedList(Struct):
    """Everything that is stopped now."""

    stopped: list[Wire]


class TokenFacts(Struct):
    """Everything about a token except the token itself."""

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
    """What is wrong, in the form of RFC 9457 and of tacit.wire: the class and the message."""

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
