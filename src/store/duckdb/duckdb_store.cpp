// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/duckdb_store.h"

#include <utility>

#include "store/duckdb/appender.h"

namespace gpusonde::store::duckdb {

Result<std::unique_ptr<DuckDbStore>> DuckDbStore::Create(std::shared_ptr<Instance> instance,
                                                         std::string writable) {
  ASSIGN_OR_RETURN(Connection writer, Connection::Open(instance));
  return std::unique_ptr<DuckDbStore>(
      new DuckDbStore(std::move(instance), std::move(writer), std::move(writable)));
}

Status DuckDbStore::Append(std::span<const model::Batch> batches) {
  if (writable_.empty()) return Fail(ErrorCode::kUnsupported, "recordings are open for reading only");
  const std::scoped_lock lock(writing_);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(writer_));
  TRY(AppendBatches(writer_, writable_, batches));
  TRY(transaction.Commit());
  names().Forget(batches);
  return {};
}

Result<std::unique_ptr<Rows>> DuckDbStore::Query(const std::string& sql,
                                                 std::span<const Parameter> parameters) {
  ASSIGN_OR_RETURN(Connection connection, Connection::Open(instance_));
  return Connection::Query(std::move(connection), sql, parameters, Connection::Allow::kReading);
}

}  // namespace gpusonde::store::duckdb
