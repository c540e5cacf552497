// SPDX-License-Identifier: Apache-2.0
#include "importers/sqlite/connection.h"

#include <fmt/format.h>

namespace gpusonde::importers::sqlite {
namespace {

Error SqliteError(sqlite3* database, int status, std::string_view where) {
  const std::string_view message = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(status);
  switch (status & 0xFF) {
    case SQLITE_CANTOPEN:
      return {ErrorCode::kNotFound, fmt::format("{}: {}", where, message)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::kUnavailable, fmt::format("{}: {}; another program is writing it", where, message)};
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY:
      return {ErrorCode::kPermissionDenied, fmt::format("{}: {}", where, message)};
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
      return {ErrorCode::kIo, fmt::format("{}: {}", where, message)};
    default:
      return {ErrorCode::kCorrupt, fmt::format("{}: {}", where, message)};
  }
}

// file:PATH with what URIs reserve as %XX.
std::string UriOf(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path)
    if (c == '?' || c == '#' || c == '%')
      uri += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      uri += c;
  return uri + "?immutable=1";
}

}  // namespace

Result<bool> Statement::Step() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  return Fail(SqliteError(sqlite3_db_handle(statement_), status, "reading a row"));
}

std::string Statement::Text(int column) const {
  // Converts UTF-16, which a blob would not.
  const auto* const bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return bytes == nullptr ? ""
                          : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& name, int flags,
                                                     const std::string& path) {
  std::unique_ptr<Connection> connection(new Connection);
  connection->path_ = path;
  const int status =
      sqlite3_open_v2(name.c_str(), &connection->database_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (status != SQLITE_OK) return Fail(SqliteError(connection->database_, status, path));
  // The schema is untrusted: allow none of its functions, and check pages when they are read.
  sqlite3_db_config(connection->database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection->database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_exec(connection->database_, "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
  return connection;
}

Result<std::unique_ptr<Connection>> Connection::Open(const std::string& file, const std::string& path) {
  return Open(UriOf(file), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path);
}

// Reading applies a journal; leaving the mode with a log applies that.
Status Connection::Settle(const std::string& file, const std::string& path) {
  ASSIGN_OR_RETURN(const auto connection, Open(file, SQLITE_OPEN_READWRITE, path));
  for (const char* const sql : {"SELECT count(*) FROM sqlite_schema", "PRAGMA journal_mode = DELETE"}) {
    ASSIGN_OR_RETURN(Statement statement, connection->Prepare(sql));
    TRY(statement.Step());
  }
  return {};
}

void Connection::AcceptTruncated() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  sqlite3_db_config(database_, SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
}

Result<Statement> Connection::Prepare(const std::string& sql) const {
  sqlite3_stmt* statement = nullptr;
  const int status =
      sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (status != SQLITE_OK) return Fail(SqliteError(database_, status, path_));
  return Statement(statement);
}

std::string Quote(std::string_view identifier) {
  std::string quoted = "\"";
  for (const char c : identifier) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace gpusonde::importers::sqlite
