"""What is shipped: sources with docs, tests and benchmarks; a wheel with the package alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
SHIPPED = ("docs", "tests", "benchmarks", "kernel", "src")
SINGLE = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "MANIFEST.in", "Makefile", "README.md")
PINS = ("constraints.txt", "constraints-oldest.txt", "constraints-peers.txt")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both distributions, built from a copy: building writes into its folder."""
    folder = tmp_path_factory.mktemp("tacit")
    for name in SHIPPED:
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc", "*.so")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in (*SINGLE, *PINS, "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    for kind in ("build_sdist", "build_wheel"):
        made = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", BUILD, kind, "dist"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
    return folder


def _files(folder: Path, name: str) -> set[str]:
    top = folder / name
    return {path.relative_to(folder).as_posix() for path in top.rglob("*") if path.is_file()}


def test_the_source_distribution_holds_docs_tests_and_benchmarks(built: Path) -> None:
    (path,) = (built / "dist").glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder in ("docs", "tests", "benchmarks", "kernel", "src/tacit"):
        due = {file for file in _files(built, folder) if "__pycache__" not in file}
        assert due
        assert due <= names
    assert {*SINGLE, *PINS, "pyproject.toml"} <= names


def test_a_wheel_holds_the_package_alone(built: Path) -> None:
    (path,) = (built / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    package = {f"tacit/{file.removeprefix('src/tacit/')}" for file in _files(built, "src/tacit")}
    others = {name for name in names if ".dist-info/" not in name}
    assert others - {"tacit/_kernel.abi3.so"} == package


def test_one_wheel_serves_every_python(built: Path) -> None:
    """Its loops are compiled if a compiler is found, against what no later Python changes."""
    (path,) = (built / "dist").glob("*.whl")
    assert "-cp311-abi3-" in path.name


def test_without_a_compiler_the_package_is_built_all_the_same(built: Path) -> None:
    environment = {**os.environ, "CC": "/nowhere/cc"}
    shutil.rmtree(built / "build", ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, "build_wheel", "without"],
        cwd=built,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert made.returncode == 0, made.stderr
    (path,) = (built / "without").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert "tacit/kernel.py" in archive.namelist()
        assert not [name for name in archive.namelist() if name.endswith(".so")]
