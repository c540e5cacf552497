// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "store/duckdb/connection.h"

namespace gpusonde::store::duckdb {

// A test over a connection to a database in memory, empty at first.
class MemoryConnectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto instance = Instance::Create({});
    ASSERT_TRUE(instance.has_value()) << instance.error().message;
    auto connection = Connection::Open(*instance);
    ASSERT_TRUE(connection.has_value()) << connection.error().message;
    connection_.emplace(std::move(*connection));
  }

  std::optional<Connection> connection_;
};

}  // namespace gpusonde::store::duckdb
