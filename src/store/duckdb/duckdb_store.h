// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "store/duckdb/connection.h"
#include "store/store.h"

namespace gpusonde::store::duckdb {

// A Store over the files attached to one Instance.
class DuckDbStore : public Store {
 public:
  // `writable` is the catalog that Append adds to; "" for a store that only reads, whose Query then refuses
  // statements that don't. The views must be there.
  static Result<std::unique_ptr<DuckDbStore>> Create(std::shared_ptr<Instance> instance,
                                                     std::string writable);

  Status Append(std::span<const model::Batch> batches) override;
  Result<std::unique_ptr<Rows>> Query(const std::string& sql, std::span<const Parameter> parameters) override;
  void Interrupt() override { instance_->Interrupt(); }
  void Resume() override { instance_->Resume(); }

 private:
  DuckDbStore(std::shared_ptr<Instance> instance, Connection writer, std::string writable)
      : instance_(std::move(instance)), writer_(std::move(writer)), writable_(std::move(writable)) {}

  std::shared_ptr<Instance> instance_;
  std::mutex writing_;
  Connection writer_;  // guarded by writing_
  std::string writable_;
};

}  // namespace gpusonde::store::duckdb
