"""What requests and responses look like; the OpenAPI document is made from these types.

Values of Tacit's own (statements, plans, shares, streams, errors) are objects of `tacit.wire`:
their first key says what they are.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from tacit.server.tokens import Role

VERSIONS = (1,)
"""The versions of the protocol that this server speaks."""

Wire = Annotated[dict[str, Any], Meta(description="An object as tacit.wire writes it.")]
Number = Annotated[
    str | int | float,
    Meta(description="Read exactly: 1, 0.1, '1/2' or '1e-9'.", extra_json_schema={"example": 1}),
]
Scalar = str | int | float | bool | None
Value = Scalar | list[Scalar]


# Requests: an unknown field is refused, since it would be meant


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
    kind: Literal["counts", "any"] = "counts"


class PriceOf(Struct, forbid_unknown_fields=True):
    """A count, a sum, a histogram or a small database with this ε."""

    epsilon: Number


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
