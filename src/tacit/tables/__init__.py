"""What can be asked, and what answers it: schemas, questions and engines.

::

    engine = load("visits.parquet", person="patient_id")
    question = parse("age >= 60 and town = :town", engine.schema, {"town": "Ghent"})
    (steps,) = engine.values([question])          # secret: for mechanisms only
    print(check("age >= 60", engine.schema))      # public: what is promised about a question
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.support import loader

if TYPE_CHECKING:
    from tacit.tables.engine import Engine
    from tacit.tables.keys import Batch
    from tacit.tables.loading import load
    from tacit.tables.prepared import Prepared, check, parse, parse_batch, prepare
    from tacit.tables.propose import propose_schema
    from tacit.tables.question import Question
    from tacit.tables.report import report_schema
    from tacit.tables.schema import EACH_ROW, Column, Schema, read_schema, write_schema
    from tacit.tables.show import Statement
    from tacit.tables.text_format import TextFormat

# Every public name and its module, loaded on first use: proposing a schema needs no SQL.
_HOME = {
    "EACH_ROW": "tacit.tables.schema",
    "Batch": "tacit.tables.keys",
    "Column": "tacit.tables.schema",
    "Engine": "tacit.tables.engine",
    "Prepared": "tacit.tables.prepared",
    "Question": "tacit.tables.question",
    "Schema": "tacit.tables.schema",
    "Statement": "tacit.tables.show",
    "TextFormat": "tacit.tables.text_format",
    "check": "tacit.tables.prepared",
    "load": "tacit.tables.loading",
    "parse": "tacit.tables.prepared",
    "parse_batch": "tacit.tables.prepared",
    "prepare": "tacit.tables.prepared",
    "propose_schema": "tacit.tables.propose",
    "read_schema": "tacit.tables.schema",
    "report_schema": "tacit.tables.report",
    "write_schema": "tacit.tables.schema",
}

__all__ = [
    "EACH_ROW",
    "Batch",
    "Column",
    "Engine",
    "Prepared",
    "Question",
    "Schema",
    "Statement",
    "TextFormat",
    "check",
    "load",
    "parse",
    "parse_batch",
    "prepare",
    "propose_schema",
    "read_schema",
    "report_schema",
    "write_schema",
]

__getattr__ = loader(__name__, _HOME)
