"""The demo's clinic: a million people who never existed, and a few outbreaks hidden among them.

Written by DuckDB from a hash of row numbers: the same clinic every time, with no randomness
that anything else could share.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PEOPLE = 1_000_000
WEEKS = 52
# fmt: off
TOWNS = (
    "Aalst", "Aarlen", "Aarschot", "Antwerp", "Ath", "Bastogne", "Beringen", "Bilzen",
    "Binche", "Bouillon", "Bree", "Bruges", "Charleroi", "Chimay", "Ciney", "Damme",
    "Diest", "Dinant", "Dour", "Eeklo", "Enghien", "Eupen", "Fleurus", "Geel", "Genk",
    "Ghent", "Halle", "Hasselt", "Huy", "Ieper", "Kortrijk", "Leuven", "Lier", "Limburg",
    "Lokeren", "Maaseik", "Mechelen", "Mons", "Namur", "Ninove", "Ostend", "Peer", "Ronse",
    "Spa", "Thuin", "Tienen", "Tongeren", "Veurne",
)
# fmt: on
DIAGNOSES = ("A09", "B01", "J06", "J11", "J18", "J45", "K29", "L20")


@dataclass(frozen=True, slots=True)
class Outbreak:
    """So many of every thousand of a town's people of these ages, sick in one week."""

    town: str
    diagnosis: str
    week: int
    per_mille: int
    ages: tuple[int, int]


OUTBREAKS = (
    Outbreak("Ghent", "J11", 4, 150, (18, 49)),
    Outbreak("Mons", "A09", 9, 60, (18, 96)),
    Outbreak("Ostend", "J11", 15, 120, (60, 96)),
    Outbreak("Leuven", "B01", 22, 310, (18, 39)),
    Outbreak("Namur", "J18", 31, 70, (50, 96)),
    Outbreak("Bruges", "J11", 38, 110, (18, 59)),
    Outbreak("Genk", "K29", 45, 75, (30, 69)),
    Outbreak("Spa", "J06", 50, 95, (18, 96)),
)

AGES = (18, 96)

SCHEMA = f"""\
[columns.patient_id]
type = "integer"

[columns.town]
type = "text"
keys = {list(TOWNS)}

[columns.age]
type = "integer"
bounds = {list(AGES)}

[columns.diagnosis]
type = "text"
keys = {list(DIAGNOSES)}

[columns.week]
type = "integer"
bounds = [1, {WEEKS}]

[columns.cost]
type = "real"
grid = "0.01"
bounds = [0, 200]
total = [0, 1000]
"""


def write_clinic(folder: Path) -> Path:
    """Write ``visits.parquet`` and its schema; the path of the former."""
    import duckdb

    path = folder / "visits.parquet"
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    connection.execute(
        f"""
        CREATE TABLE people AS
        SELECT range AS patient_id, hash(range) AS h,
               {list(TOWNS)}[1 + (hash(range) % {len(TOWNS)})::INT] AS town,
               (18 + (hash(range) >> 8) % 40 + (hash(range) >> 20) % 40)::INT AS age
        FROM range({PEOPLE})
        """
    )
    connection.execute(
        f"""
        CREATE TABLE visits AS
        SELECT patient_id, town, age,
               {list(DIAGNOSES)}[1 + (v % {len(DIAGNOSES)})::INT] AS diagnosis,
               (1 + (v >> 8) % {WEEKS})::INT AS week, ((v >> 20) % 20000)::INT / 100.0 AS cost
        FROM (SELECT *, hash(patient_id * 8 + visit) AS v
              FROM (SELECT *, unnest(range((1 + (h >> 32) % 4)::BIGINT)) AS visit FROM people))
        """
    )
    for number, outbreak in enumerate(OUTBREAKS):
        connection.execute(
            f"""
            INSERT INTO visits
            SELECT patient_id, town, age, ?, ?, 40.0 FROM people
            WHERE town = ? AND age BETWEEN ? AND ? AND hash(patient_id * 8 + {number}) % 1000 < ?
            """,
            [
                outbreak.diagnosis,
                outbreak.week,
                outbreak.town,
                *outbreak.ages,
                outbreak.per_mille,
            ],
        )
    connection.execute(f"COPY (FROM visits ORDER BY hash(patient_id, week)) TO '{path}'")
    connection.close()
    (folder / "visits.toml").write_text(SCHEMA)
    return path
