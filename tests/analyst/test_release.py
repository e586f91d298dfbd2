"""SmallDB at the door: tables, budgets, plans, and what a release can do."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

import tacit
from tacit.analyst.question_class import FiniteClass, OrderedClass
from tacit.analyst.release import SmallDb
from tacit.book import shattering
from tacit.book.coins import InsecureTestCoins
from tacit.budget import Budget
from tacit.errors import (
    BadParameter,
    BudgetExhausted,
    Infeasible,
    KeyReused,
    NotWritten,
    QuestionRefused,
)
from tacit.tables import Column

LOTS = 10**6


@pytest.fixture
def rich_budget():
    return Budget.in_memory(epsilon=10 * LOTS, covers=["visits", "people"])


def truth(test, people=300):
    """The fraction of the 300 people whose age, 0..99 in turn, passes a test."""
    return Fraction(sum(test(pid % 100) for pid in range(people)), people)


def test_with_much_epsilon_a_release_is_as_good_as_its_size_allows(visits, rich_budget):
    release = visits.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=LOTS, alpha="1/40", budget=rich_budget
    )
    assert release.rows == 20  # ⌈1/(2α)⌉
    for age in range(0, 120, 7):
        found = release.answer(f"age <= {age}")
        assert abs(found - truth(lambda a, age=age: a <= age)) <= Fraction(1, 40)
        assert release.answer(f"age > {age}") == 1 - found


def test_intervals_answer_both_ends(visits, rich_budget):
    release = visits.small_db(
        tacit.intervals("age"), max_rows=1, epsilon=LOTS, alpha="1/20", budget=rich_budget
    )
    assert release.rows == 20
    for low in range(0, 100, 13):
        for high in range(low, 120, 17):
            found = release.answer(f"age between {low} and {high}")
            assert abs(found - truth(lambda a, low=low, high=high: low <= a <= high)) <= Fraction(
                1, 20
            )
    assert release.count("age between 30 and 39") == release.answer("age between 30 and 39") * 300


def test_a_list_of_predicates_over_several_columns(visits, rich_budget):
    questions = ["town = 'Bruges'", "town = 'Bruges' and age < 50", "age >= 90"]
    release = visits.small_db(questions, max_rows=1, epsilon=LOTS, rows=6, budget=rich_budget)
    assert abs(release.answer("town = 'Bruges'") - Fraction(2, 3)) <= release.plan.size.alpha
    assert release.answer("not (age < 90)") == release.answer("age >= 90")  # one of the class
    assert release.answer("town <> 'Bruges'") == 1 - release.answer("town = 'Bruges'")
    with pytest.raises(QuestionRefused, match="promises nothing"):
        release.answer("age >= 91")
    with pytest.raises(QuestionRefused):
        release.answer("cost > 3")


def test_what_is_not_of_the_class_is_refused(visits, rich_budget):
    release = visits.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=1, rows=5, budget=rich_budget
    )
    with pytest.raises(QuestionRefused, match="only prefixes of age"):
        release.answer("age between 30 and 39")
    with pytest.raises(QuestionRefused, match="predicates"):
        release.answer("count(age <= 3) - count(age > 5)")


def test_the_plan_is_public_and_costs_nothing(visits_file, tmp_path):
    other = tmp_path / "other" / "visits.csv"
    other.parent.mkdir()
    other.write_text("pid,town,age,cost\n1,Ghent,3,2.5\n")
    (other.parent / "visits.toml").write_text((visits_file.parent / "visits.toml").read_text())
    plans = []
    for file in (visits_file, other):
        with tacit.open(file, person="pid", people=300) as table:
            plans.append(
                str(table.plan_small_db(tacit.intervals("age"), max_rows=1, epsilon=1, rows=9))
            )
            plans.append(str(table.plan_small_db(["age < 3"], max_rows=1, epsilon=1, rows=9)))
    assert plans[:2] == plans[2:]


def test_the_size_comes_from_the_smallest_proved_clause(visits):
    plan = visits.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1, alpha="0.01")
    assert (plan.rows, plan.size.clause) == (50, "prefixes")
    finite = visits.plan_small_db(["age < 30", "age < 60"], max_rows=1, epsilon=1, rows=4)
    assert finite.expectation.sampler == "enumeration"
    chosen = visits.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1)
    assert chosen.guarantee() is not None


def test_the_guarantee_needs_a_public_number_of_people(visits_file):
    with tacit.open(visits_file, person="pid") as table:
        plan = table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1, rows=9)
        assert plan.guarantee() is None
        assert "unknown without people" in str(plan)
        with pytest.raises(BadParameter, match="people"):
            table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1)


def test_the_guarantee_holds_in_a_hundred_releases(visits, rich_budget):
    failures = 0
    for _ in range(100):
        release = visits.small_db(
            tacit.prefixes("age"), max_rows=1, epsilon=1, rows=8, budget=rich_budget
        )
        worst = max(
            abs(release.answer(f"age <= {age}") - truth(lambda a, age=age: a <= age))
            for age in range(0, 121, 4)
        )
        failures += worst > release.guarantee("1/4")
    assert failures <= 40  # 25 expected at the very most


def test_the_planner_says_when_something_simpler_is_better(visits_file, rich_budget):
    with tacit.open(visits_file, person="pid", people=10**6) as table:
        advice = table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1, rows=99).advice
        assert "table.ranges('age', ...) is expected to err less" in advice
        assert table.ranges("age", epsilon=1, max_rows=1, budget=rich_budget)  # it can be called
        listed = table.plan_small_db(["age < 9", "age < 50"], max_rows=1, epsilon=1, rows=3).advice
        assert "table.count for each of 2 questions is expected to err less" in listed
        unlisted = table.plan_small_db(tacit.prefixes("pid"), max_rows=1, epsilon=1, rows=99).advice
        assert "histogram" not in unlisted  # it has no declared domain
    with tacit.open(visits_file, person="pid", people=300) as table:
        assert (
            table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon="1/10", rows=5).advice
            == ""
        )


def test_what_cannot_be_drawn_is_refused_before_paying(visits, rich_budget):
    before = rich_budget.left
    with pytest.raises(Infeasible, match="Nothing was spent"):
        visits.small_db(
            tacit.intervals("age"), max_rows=1, epsilon=1, rows=60_000, budget=rich_budget
        )
    with pytest.raises(QuestionRefused, match="declared values"):
        visits.small_db(["pid < 3"], max_rows=1, epsilon=1, rows=3, budget=rich_budget)
    with pytest.raises(QuestionRefused, match="text"):
        visits.small_db(tacit.prefixes("town"), max_rows=1, epsilon=1, rows=3, budget=rich_budget)
    with pytest.raises(BadParameter, match="column"):
        visits.small_db(tacit.prefixes("agee"), max_rows=1, epsilon=1, rows=3, budget=rich_budget)
    with pytest.raises(BadParameter, match="not both"):
        visits.small_db(
            tacit.prefixes("age"), max_rows=1, epsilon=1, rows=3, alpha=0.1, budget=rich_budget
        )
    with pytest.raises(BadParameter, match="questions"):
        visits.small_db([], max_rows=1, epsilon=1, rows=3, budget=rich_budget)
    assert rich_budget.left == before


def test_a_universe_that_cannot_be_listed_is_refused(visits, monkeypatch):
    monkeypatch.setattr("tacit.analyst.question_class.MOST_ANSWERS", 200)
    with pytest.raises(Infeasible, match="more than 200 answers"):
        visits.plan_small_db(["age < 3", "age < 4"], max_rows=1, epsilon=1, rows=3)
    monkeypatch.setattr("tacit.analyst.question_class.MOST_ELEMENTS", 100)
    with pytest.raises(Infeasible, match="at most 100 can be listed"):
        visits.plan_small_db(["age < 3"], max_rows=1, epsilon=1, rows=3)


def test_a_release_is_paid_first(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    visits.small_db(tacit.prefixes("age"), max_rows=1, epsilon="3/4", rows=5, budget=budget)
    with pytest.raises(BudgetExhausted):
        visits.small_db(tacit.prefixes("age"), max_rows=1, epsilon="1/2", rows=5, budget=budget)


def test_disguises_cost_and_err_like_the_one_question(visits):
    once = visits.plan_small_db(["age >= 60"], max_rows=1, epsilon=1, rows=7)
    disguised = visits.plan_small_db(
        [
            form
            for _ in range(250)
            for form in (
                "age >= 60",
                "not age < 60",
                "age > 59",
                "age < 60 or age is null",
            )
        ],
        max_rows=1,
        epsilon=1,
        rows=7,
    )
    assert disguised.guarantee() == once.guarantee()
    assert disguised.expectation == once.expectation
    assert disguised.size == once.size


def test_vc_dimension_of_questions_over_the_declared_domain(visits):
    listed = [f"age <= {age}" for age in range(20, 60, 5)]
    ages = visits.questions(listed)
    found = ages.vc_dimension()
    assert found.dimension == 1
    (point,) = found.points  # the witness: one question leaves this age out, another takes it
    out, into = (listed[question] for question in found.questions)
    (age,) = ages.universe[point]
    assert not age <= int(out.split()[-1])
    assert age <= int(into.split()[-1])
    assert str(found) == f"VC dimension 1 (point age = {age} shattered)"
    towns = visits.questions(["town = 'Ghent'", "town = 'Bruges'", "age <= 119"]).vc_dimension()
    assert towns.values
    assert all("town = '" in value for value in towns.values)  # as it is written, not as a code
    assert str(visits.questions(tacit.intervals("age")).vc_dimension()) == (
        "VC dimension 2 (points age = 0, age = 2 shattered)"
    )
    assert visits.questions(["age < 3", "age >= 3"]).vc_dimension().dimension == 1  # as given
    assert visits.questions(["age < 3"]).vc_dimension().dimension == 0
    assert visits.questions(tacit.prefixes("age")).vc_dimension().dimension == 1
    assert visits.questions(tacit.intervals("pid")).vc_dimension().dimension == 2


@pytest.mark.parametrize("kind", ["prefixes", "intervals"])
@pytest.mark.parametrize("domain", [1, 2, 3, 4, 5, 7])
def test_vc_dimension_of_ordered_classes_against_the_whole_matrix(kind, domain):
    ordered = OrderedClass(Column("n", "integer", bounds=(1, domain)), kind)
    points = range(1, domain + 1)
    starts = [1] if kind == "prefixes" else points
    matrix = [[u <= p <= v for p in points] for u in starts for v in points if u <= v]
    assert ordered.vc_dimension().dimension == tacit.vc_dimension(matrix).dimension


def test_a_class_of_questions_is_built_once(visits, rich_budget, monkeypatch):
    """Its matrix and the search for its VC dimension can take seconds."""
    built, searched = [], []
    of, search = FiniteClass.of, shattering.vc_dimension
    monkeypatch.setattr(FiniteClass, "of", lambda *given: built.append(given) or of(*given))
    monkeypatch.setattr(
        shattering,
        "vc_dimension",
        lambda *m, **o: searched.append(m) or search(*m, **o),
    )
    release = visits.small_db(
        ["age < 50", "age < 9"], max_rows=1, epsilon=1, rows=4, budget=rich_budget
    )
    release.answer("age < 50")
    release.to_dict()
    assert (len(built), len(searched)) == (1, 1)


def test_saving_loading_and_other_shapes(visits, rich_budget, tmp_path):
    release = visits.small_db(
        ["town = 'Ypres'", "age < 50"], max_rows=1, epsilon=1, rows=4, budget=rich_budget
    )
    release.save(tmp_path / "r.json")
    again = tacit.load_release(tmp_path / "r.json")
    assert again.to_dict() == release.to_dict()
    assert (again.privacy, again.guarantee()) == (release.privacy, release.guarantee())
    assert again.answer("age < 50") == release.answer("age < 50")
    assert release.to_arrow().num_rows == 4
    assert list(release.to_pandas().columns) == ["age", "town"]
    assert release.to_polars().shape == (4, 2)
    release.to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text().splitlines()[0] == "age,town"
    release.to_parquet(tmp_path / "r.parquet")
    assert (tmp_path / "r.parquet").stat().st_size > 0
    release.plot(tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 1000
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(BadParameter, match="not a release"):
        tacit.load_release(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("questions", "size"),
    [
        (["town = 'Ypres'", "age < 50"], {"alpha": "0.3"}),
        (["town = 'Ypres'", "age < 50"], {"rows": 5}),
        (tacit.prefixes("age"), {"alpha": "0.03"}),
        (tacit.intervals("age"), {}),
    ],
)
def test_the_guarantee_is_what_is_proved_and_survives_saving(
    visits, rich_budget, tmp_path, questions, size
):
    release = visits.small_db(questions, max_rows=1, epsilon=1, budget=rich_budget, **size)
    if "alpha" in size:
        assert release.plan.size.alpha <= Fraction(size["alpha"])
    by_rows = visits.plan_small_db(questions, max_rows=1, epsilon=1, rows=release.rows)
    assert release.guarantee() == by_rows.guarantee()
    release.save(tmp_path / "r.json")
    assert tacit.load_release(tmp_path / "r.json").guarantee() == release.guarantee()


def worst_in_people(release, people=300):
    """The largest error of any prefix of age: all take part, one row each."""
    return people * max(
        abs(release.answer(f"age <= {age}") - truth(lambda a, age=age: a <= age))
        for age in range(121)
    )


def test_a_certificate_says_how_far_the_drawn_rows_are_off(visits, rich_budget):
    release = visits.small_db(
        tacit.prefixes("age"),
        max_rows=1,
        epsilon=1,
        rows=8,
        certificate_epsilon=LOTS,
        budget=rich_budget,
    )
    assert release.off_by.value == worst_in_people(release)  # of such a large ε no noise is left
    assert release.certified() == release.off_by.value
    listed = ["town = 'Bruges'", "age < 50"]
    release = visits.small_db(
        listed, max_rows=1, epsilon=1, rows=3, certificate_epsilon=LOTS, budget=rich_budget
    )
    shares = Fraction(2, 3), truth(lambda a: a < 50)
    errors = [abs(release.answer(text) - share) for text, share in zip(listed, shares, strict=True)]
    assert release.off_by.value == 300 * max(errors)


def test_a_certificate_holds_as_often_as_it_says(visits, rich_budget):
    failures = 0
    for _ in range(200):
        release = visits.small_db(
            tacit.prefixes("age"),
            max_rows=1,
            epsilon=1,
            rows=4,
            certificate_epsilon=1,
            budget=rich_budget,
        )
        failures += worst_in_people(release) > release.certified("1/4")
    assert 15 <= failures <= 90  # of 200 at β = 1/4: 50 at most are expected, and not far fewer
    assert release.certified("1/20") > release.certified("1/4") >= release.certified("3/4")


def test_a_certificate_is_paid_for_together_with_its_rows(visits):
    budget = Budget.in_memory(epsilon=1, covers=["visits"])
    asked = {"questions": tacit.prefixes("age"), "epsilon": "9/10", "rows": 5, "max_rows": 1}
    with pytest.raises(BudgetExhausted):
        visits.small_db(**asked, certificate_epsilon="1/5", budget=budget)
    assert budget.spent.epsilon == 0
    release = visits.small_db(**asked, certificate_epsilon="1/10", budget=budget, retry_key="once")
    assert budget.spent.epsilon == release.privacy.epsilon == 1
    (told,) = [entry.body["what"] for entry in budget.history if "what" in entry.body]
    assert told == "release of prefixes of age, certified"
    again = visits.small_db(**asked, certificate_epsilon="1/10", budget=budget, retry_key="once")
    assert again.certified() == release.certified()
    with pytest.raises(KeyReused):
        visits.small_db(**asked, budget=budget, retry_key="once")
    plan = visits.plan_small_db(**asked, certificate_epsilon="1/10")
    assert plan.cost.parts == ((1, Fraction(1, 10)),)
    assert plan.cost.ranges == ((1, Fraction(9, 10)),)
    assert plan.guarantee() == visits.plan_small_db(**asked).guarantee()
    assert "measured  afterwards: how far the drawn rows are off, ± 30 people (95 %)" in str(plan)
    assert "measured" not in str(visits.plan_small_db(**asked))
    for wrong in (0, -1, "x", "1e-13", "1e13", True):
        with pytest.raises(BadParameter, match="certificate_epsilon"):
            visits.small_db(**asked, certificate_epsilon=wrong, budget=budget)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_certificate_has_noise_for_all_rows_of_a_person(visits, rich_budget, max_rows):
    asked = {"questions": tacit.prefixes("age"), "max_rows": max_rows, "epsilon": 1, "rows": 4}
    plan = visits.plan_small_db(**asked, certificate_epsilon="2/5")
    release = visits.small_db(**asked, certificate_epsilon="2/5", budget=rich_budget)
    for noise, grid in (
        (plan.certifying.scale, plan.certifying.grid),
        (release.off_by.noise_scale, release.off_by.grid),
    ):
        assert noise * grid == max_rows / Fraction(2, 5)


@pytest.mark.parametrize("asked", [tacit.prefixes("age"), ("age < 30", "age < 60")], ids=str)
def test_several_rows_of_a_person_divide_epsilon(asked, tmp_path):
    """The score is divided by r: where nobody has two rows, r at rε are drawn as one at ε."""
    rows = "".join(f"{pid},{pid % 100}\n" for pid in range(60))
    (tmp_path / "people.csv").write_text(f"pid,age\n{rows}")
    schema = '[columns.pid]\ntype="integer"\n[columns.age]\ntype="integer"\nbounds=[0, 99]\n'
    with tacit.open(tmp_path / "people.csv", person="pid", schema=schema) as table:

        def drawn(epsilon, max_rows):
            plan = table.plan_small_db(asked, epsilon=epsilon, max_rows=max_rows, rows=4)
            mechanism = SmallDb(plan, table.schema, asked)
            several = [mechanism.draw(table.engine, InsecureTestCoins(seed)) for seed in range(30)]
            return [each.codes.tolist() for each in several]

        assert drawn("3/5", 3) == drawn("1/5", 1) != drawn("3/5", 1)


def test_a_certificate_is_saved_with_its_release(visits, rich_budget, tmp_path):
    release = visits.small_db(
        tacit.prefixes("age"),
        max_rows=1,
        epsilon=1,
        rows=7,
        certificate_epsilon="1/3",
        budget=rich_budget,
    )
    assert "measured: within" in str(release)
    release.save(tmp_path / "r.json")
    again = tacit.load_release(tmp_path / "r.json")
    assert (again.off_by, again.privacy) == (release.off_by, release.privacy)
    assert again.certified("1/9") == release.certified("1/9")
    fields = json.loads((tmp_path / "r.json").read_text())
    measured = fields["certificate"]
    empty: tuple[object, ...] = ({}, [], 3)
    for wrong in (*empty, {**measured, "off_by": "1/5"}, {**measured, "epsilon": "-1"}):
        (tmp_path / "r.json").write_text(json.dumps({**fields, "certificate": wrong}))
        with pytest.raises(BadParameter, match="not a release that Tacit saved"):
            tacit.load_release(tmp_path / "r.json")
    plain = visits.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=1, rows=7, budget=rich_budget
    )
    assert plain.certified() is None
    assert "certificate" not in plain.as_json()
    with pytest.raises(BadParameter, match="beta"):
        plain.certified(2)


def test_the_chosen_size_is_the_one_that_usually_errs_least(visits_file):
    with tacit.open(visits_file, person="pid", people=10_000) as table:
        plan = table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1)
        assert plan.rows == 100  # √(εn)
        proved = "these rows usually err least; rows=44 have the least proved error"
        assert proved in plan.advice
        fewer = table.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1, rows=44)
        assert (fewer.guarantee() or 1) < (plan.guarantee() or 0)
        assert (
            proved
            not in table.plan_small_db(
                tacit.prefixes("age"), max_rows=1, epsilon=1, rows=100
            ).advice
        )
        wide = table.plan_small_db(tacit.prefixes("pid"), max_rows=1, epsilon=1)  # 2^62 values
        assert wide.rows < 60  # there are too many candidates for √(εn)


def wrong_releases(fields):
    """A saved release with something missing, or something that cannot be."""
    for name in fields.keys() - {"covers"}:  # which follows from the rest, and is not read
        if name != "rows_chosen":  # which version 0.1 did not say
            yield {key: value for key, value in fields.items() if key != name}
        yield {**fields, name: -1.5}
        yield {**fields, name: [None]}
    for codes in ([], [0, 1], [[0]], [[0, 1, 2]], [[0, 3]], [[121, 0]], [[-1, 0]], [[0, 0], [0]]):
        yield {**fields, "codes": codes}
    for code in (1.5, True, "1", 10**30, None):
        yield {**fields, "codes": [[0, code]]}
    yield {**fields, "questions": {"column": "age", "kind": "points"}}
    yield {**fields, "questions": {"column": "age", "kind": "prefixes", "more": 1}}
    yield {**fields, "people": -3}
    yield {**fields, "epsilon": "0"}


def test_what_is_not_a_whole_release_is_refused_in_words(visits, rich_budget, tmp_path):
    release = visits.small_db(
        ["town = 'Ypres'", "age < 50"], max_rows=1, epsilon=1, rows=4, budget=rich_budget
    )
    file = tmp_path / "r.json"
    release.save(file)
    fields = json.loads(file.read_text())
    for wrong in [*wrong_releases(fields), [], 3, None, "text", [[]] * 3]:
        file.write_text(json.dumps(wrong))
        with pytest.raises(BadParameter, match="not a release that Tacit saved"):
            tacit.load_release(file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadParameter, match="not a release"):
        tacit.load_release(file)
    with pytest.raises(BadParameter, match="cannot be read: No such file"):
        tacit.load_release(tmp_path / "nothing.json")
    file.write_text(json.dumps(fields))
    assert tacit.load_release(file).to_dict() == release.to_dict()


def test_a_count_needs_a_whole_number_of_people(visits, rich_budget):
    release = visits.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=1, rows=5, budget=rich_budget
    )
    for people in ("abc", -5, 0, 2.5, True):
        with pytest.raises(BadParameter, match="people"):
            release.count("age < 50", people=people)
    assert release.count("age < 50", people=10) == release.answer("age < 50") * 10


def test_a_path_that_cannot_be_written_loses_nothing(visits, rich_budget, tmp_path):
    release = visits.small_db(
        tacit.prefixes("age"), max_rows=1, epsilon=1, rows=5, budget=rich_budget
    )
    for name, write in [
        ("r.json", release.save),
        ("r.csv", release.to_csv),
        ("r.parquet", release.to_parquet),
    ]:
        with pytest.raises(NotWritten, match="could not be written") as refusal:
            write(tmp_path / "nowhere" / name)
        assert refusal.value.strerror is not None
        assert refusal.value.strerror in str(refusal.value)
        write(tmp_path / name)
    with pytest.raises(tacit.TacitError):  # where to draw may be checked before
        release.plot(tmp_path / "nowhere" / "r.png")


REAL = """
[columns.id]
type = "integer"
[columns.height]
type = "real"
[columns.born]
type = "date"
bounds = ["1900-01-01", "2026-01-01"]
[columns.smoker]
type = "boolean"
"""


@pytest.fixture
def people(tmp_path):
    rows = ["id,height,born,smoker"]
    for n in range(400):
        rows.append(f"{n},{1.5 + n / 1000},{1950 + n % 50}-06-15,{'true' if n % 4 else 'false'}")
    rows += ["900,nan,,", "901,,1999-01-01,true"]
    file = tmp_path / "people.csv"
    file.write_text("\n".join(rows) + "\n")
    with tacit.open(file, person=tacit.EACH_ROW, schema=REAL, people=402) as table:
        yield table


def test_real_numbers_dates_and_missing_values(people, rich_budget):
    """The seed's infinite class: every threshold on the real line, by order alone."""
    heights = people.small_db(
        tacit.prefixes("height"), max_rows=1, epsilon=LOTS, alpha="1/50", budget=rich_budget
    )
    assert abs(heights.answer("height <= 1.7") - Fraction(201, 400)) <= Fraction(1, 50) + Fraction(
        1, 400
    )
    assert all(1.4 < height < 2.0 for height in heights.to_dict()["height"])
    born = people.small_db(
        tacit.intervals("born"), max_rows=1, epsilon=LOTS, rows=40, budget=rich_budget
    )
    found = born.answer("born between '1960-01-01' and '1969-12-31'")
    assert abs(found - Fraction(80, 401)) <= born.plan.size.alpha + Fraction(1, 400)
    smokers = people.small_db(["smoker"], max_rows=1, epsilon=LOTS, rows=20, budget=rich_budget)
    assert abs(smokers.answer("smoker") - Fraction(301, 401)) <= Fraction(1, 20)


def test_several_rows_of_a_person_count_as_declared(visits, rich_budget):
    one = visits.plan_small_db(tacit.prefixes("age"), max_rows=1, epsilon=1, rows=8)
    two = visits.plan_small_db(tacit.prefixes("age"), epsilon=1, rows=8, max_rows=2)
    assert two.guarantee() > one.guarantee()
    release = visits.small_db(
        tacit.prefixes("age"), epsilon=LOTS, rows=20, max_rows=2, budget=rich_budget
    )
    assert abs(release.answer("age < 50") - Fraction(1, 2)) <= Fraction(1, 20)


def test_an_integer_without_bounds_keeps_its_resolution(tmp_path, rich_budget):
    """2 000 people aged 4: nobody is 3 or younger, and the release says so."""
    file = tmp_path / "people.csv"
    file.write_text("age,weight\n" + "4,0.25\n" * 2000)
    schema = '[columns.age]\ntype = "integer"\n[columns.weight]\ntype = "real"\n'
    with tacit.open(file, person=tacit.EACH_ROW, schema=schema, people=2000) as table:
        ages = table.small_db(
            tacit.prefixes("age"), max_rows=1, epsilon=10, rows=20, budget=rich_budget
        )
        bound = ages.guarantee("1e-6")
        assert bound is not None
        assert ages.answer("age <= 3") <= bound
        assert ages.answer("age <= 4") >= 1 - bound
        with pytest.raises(QuestionRefused, match="with ends from -2305843009213693951"):
            ages.answer("age <= 3000000000000000000")
        spans = table.small_db(
            tacit.intervals("weight"), max_rows=1, epsilon=LOTS, rows=2, budget=rich_budget
        )
        assert spans.answer("weight between 0.25 and 0.25") == 1
        assert spans.answer("weight > 0.25") == spans.answer("weight < 0.25") == 0
        assert spans.answer("weight > 0") == 1
        with pytest.raises(QuestionRefused, match="of a size from"):
            spans.answer("weight <= 1e-200")
