"""What can be asked, and who answers: schemas, questions and engines.

::

    engine = load("visits.parquet", person="patient_id")
    question = parse("age >= 60 and town = :town", engine.schema, {"town": "Ghent"})
    (steps,) = engine.values([question])          # secret: for mechanisms only
    print(check("age >= 60", engine.schema))      # public: what is promised about a question
"""

from tacit.tables.engine import Engine
from tacit.tables.loading import load
from tacit.tables.prepared import Prepared, check, parse, parse_batch, prepare
from tacit.tables.propose import propose_schema
from tacit.tables.question import Batch, Question
from tacit.tables.schema import EACH_ROW, Column, Schema, read_schema, write_schema
from tacit.tables.show import Statement

__all__ = [
    "EACH_ROW",
    "Batch",
    "Column",
    "Engine",
    "Prepared",
    "Question",
    "Schema",
    "Statement",
    "check",
    "load",
    "parse",
    "parse_batch",
    "prepare",
    "propose_schema",
    "read_schema",
    "write_schema",
]
