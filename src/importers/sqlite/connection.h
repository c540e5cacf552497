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
  // Reads `file`, ignoring a journal or log beside it, without a lock; errors name it `path`.
  static Result<std::unique_ptr<Connection>> Open(const std::string& file, const std::string& path);
  // Applies the journal or log beside `file` to it, and removes that; errors name it `path`.
  static Status Settle(const std::string& file, const std::string& path);
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
  // `name`: of a file or a URI, by the flags of sqlite3_open_v2.
  static Result<std::unique_ptr<Connection>> Open(const std::string& name, int flags,
                                                  const std::string& path);

  std::string path_;
  sqlite3* database_ = nullptr;
};

// "name" with quotes, as an identifier in SQL.
std::string Quote(std::string_view identifier);

}  // namespace gpusonde::importers::sqlite
