// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"

namespace gpusonde::importers::sqlite {

// A prepared statement of libsqlite3.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  sqlite3_stmt* get() const { return statement_; }
  // True: there is a row. Errors: kCorrupt, kIo, with libsqlite3's message.
  Result<bool> Step();
  std::string Text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// A read-only connection of one thread.
class Connection {
 public:
  // `immutable`: don't look for a journal or log, and take no lock.
  static Result<std::unique_ptr<Connection>> Open(const std::string& path, bool immutable);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { sqlite3_close(database_); }

  // Reads a file that has fewer pages than its header says. libsqlite3 allows that only for connections that
  // might repair it, which a read-only one can't.
  void AcceptTruncated();

  // Errors: kCorrupt with libsqlite3's message.
  Result<Statement> Prepare(const std::string& sql) const;

 private:
  Connection() = default;
  std::string path_;
  sqlite3* database_ = nullptr;
};

// "name" with quotes, as an identifier in SQL.
std::string Quote(std::string_view identifier);

}  // namespace gpusonde::importers::sqlite
