# SPDX-License-Identifier: Apache-2.0
"""DuckDB through the C API of the library that tools/setup downloads (`gpusonde query` deliberately writes no files)."""

import ctypes
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def library(build):
    """The library's path, in the build's tree or in this one; None if it is missing."""
    paths = (tree / "deps/duckdb/libduckdb.so" for tree in (build.parent, ROOT / "build"))
    return next((path for path in paths if path.exists()), None)


def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


class _Result(ctypes.Structure):
    """duckdb_result of duckdb.h"""
    _fields_ = [("columns", ctypes.c_uint64), ("rows", ctypes.c_uint64), ("changed", ctypes.c_uint64),
                ("deprecated_columns", ctypes.c_void_p), ("error", ctypes.c_void_p), ("data", ctypes.c_void_p)]


class Duck:
    """An in-memory database; a context manager. Not thread-safe."""

    def __init__(self, path):
        self.library = ctypes.CDLL(str(path))
        for name, kind in (("duckdb_result_error", ctypes.c_char_p), ("duckdb_row_count", ctypes.c_uint64),
                           ("duckdb_column_count", ctypes.c_uint64), ("duckdb_value_varchar", ctypes.c_void_p)):
            getattr(self.library, name).restype = kind
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self):
        if self.library.duckdb_open(None, ctypes.byref(self.database)) != 0:
            raise RuntimeError("DuckDB can't open an in-memory database")
        if self.library.duckdb_connect(self.database, ctypes.byref(self.connection)) != 0:
            raise RuntimeError("DuckDB can't connect")
        return self

    def __exit__(self, *_error):
        self.library.duckdb_disconnect(ctypes.byref(self.connection))
        self.library.duckdb_close(ctypes.byref(self.database))

    def run(self, sql):
        """Runs `sql` and returns its rows as lists of text; scalars only. Raises RuntimeError with DuckDB's message."""
        result = _Result()
        failed = self.library.duckdb_query(self.connection, sql.encode(), ctypes.byref(result))
        try:
            if failed:
                raise RuntimeError(self.library.duckdb_result_error(ctypes.byref(result)).decode())
            columns = self.library.duckdb_column_count(ctypes.byref(result))
            return [[self.value(result, column, row) for column in range(columns)]
                    for row in range(self.library.duckdb_row_count(ctypes.byref(result)))]
        finally:
            self.library.duckdb_destroy_result(ctypes.byref(result))

    def value(self, result, column, row):
        at = self.library.duckdb_value_varchar(ctypes.byref(result), ctypes.c_uint64(column), ctypes.c_uint64(row))
        if not at:
            return None
        try:
            return ctypes.string_at(at).decode()
        finally:
            self.library.duckdb_free(ctypes.c_void_p(at))
