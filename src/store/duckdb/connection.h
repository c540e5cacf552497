// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/temporary_folder.h"
#include "store/duckdb/handle.h"
#include "store/duckdb/library.h"
#include "store/store.h"

namespace gpusonde::store::duckdb {

struct Settings {
  int threads = 2;
  int64_t log_bytes = int64_t{16} << 20;  // a file's write-ahead log that is this long goes into the file
  // For what exceeds MemoryLimit() (store/memory_limit.h). "": a private folder of its own under $TMPDIR,
  // removed with the instance; where none can be made, memory is all there is.
  std::string temporary_folder;
};

// An in-memory DuckDB, to which files are attached. It loads no extension and never touches the network.
// Thread-safe.
class Instance {
 public:
  static Result<std::shared_ptr<Instance>> Create(const Settings& settings);

  const Library& library() const { return *library_; }

  // A connection, which Interrupt reaches until it is closed. Errors: kUnavailable.
  Result<Handle<duckdb_connection>> Connect();
  void Disconnect(Handle<duckdb_connection> connection);

  // Makes the statements of all connections fail with kUnavailable: those that run, and those that begin
  // before Resume.
  void Interrupt();
  void Resume() { interrupted_ = false; }
  bool interrupted() const { return interrupted_; }

  // Expires once the database is closed. A weak_ptr to the instance expires when that begins: its logs still
  // go into their files then.
  std::weak_ptr<const void> until_closed() const { return until_closed_; }

 private:
  Instance(const Library& library, TemporaryFolder folder, Handle<duckdb_database> database)
      : library_(&library), folder_(std::move(folder)), database_(std::move(database)) {}

  const std::shared_ptr<const void> until_closed_ = std::make_shared<char>();  // the first member: goes last
  const Library* library_;
  TemporaryFolder folder_;  // outlives the database, which writes to it
  Handle<duckdb_database> database_;
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;  // guards the next
  std::set<duckdb_connection> connections_;
};

// A connection: one transaction and one query at a time. Keeps its Instance alive. Not thread-safe.
class Connection {
 public:
  static Result<Connection> Open(std::shared_ptr<Instance> instance);
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  // Runs statements and discards their results.
  Status Run(const std::string& sql);
  // One statement, with parameters.
  Status Run(const std::string& sql, std::span<const Parameter> parameters);

  // Runs one statement; the rows keep the connection, which is why it is given away. Errors: kUnavailable for
  // one that takes longer than `limit`, or if it only reads and the thread's Cancellation is requested.
  enum class Allow { kEverything, kReading };
  static Result<std::unique_ptr<Rows>> Query(Connection connection, const std::string& sql,
                                             std::span<const Parameter> parameters, Allow allow,
                                             std::optional<std::chrono::milliseconds> limit = {});

  // Runs a reading statement on a connection of its own, so that it doesn't see this one's open transaction.
  Result<std::unique_ptr<Rows>> Ask(const std::string& sql, std::span<const Parameter> parameters = {});

  const Library& library() const { return instance_->library(); }
  duckdb_connection get() const { return connection_.get(); }

 private:
  Status Execute(const std::string& sql, std::span<const Parameter> parameters, Allow allow,
                 Handle<duckdb_result>& result);

  Connection(std::shared_ptr<Instance> instance, Handle<duckdb_connection> connection)
      : instance_(std::move(instance)), connection_(std::move(connection)) {}

  std::shared_ptr<Instance> instance_;
  Handle<duckdb_connection> connection_;
};

// Begins a transaction, and rolls it back on destruction unless Commit has succeeded.
class Transaction {
 public:
  static Result<Transaction> Begin(Connection& connection);
  Status Commit();

  Transaction(Transaction&& other) noexcept : connection_(std::exchange(other.connection_, nullptr)) {}
  ~Transaction();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

// An error from DuckDB's own words, its code chosen by their beginning ("IO Error: …").
Error ErrorOf(std::string_view message);

// Text as an SQL literal, a name as an SQL identifier.
std::string QuoteText(std::string_view text);
std::string QuoteName(std::string_view name);

}  // namespace gpusonde::store::duckdb
