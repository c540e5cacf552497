// SPDX-License-Identifier: Apache-2.0
#include "serve/of_hosts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/testing/temp_folder.h"
#include "base/time.h"

namespace gpusonde::serve {
namespace {

TEST(OfHosts, AHostThatIsMadeAnewHasAnotherValueThanTheDeletedOne) {
  TempFolder folder;
  const auto hosts = Hosts::Open({.folder = folder / "hosts"}).value();
  OfHosts<int> numbers;
  const auto number_of = [&](const std::string& name) -> int& {
    return numbers[hosts->FindOrMake(name).value()];
  };
  number_of("a") = 1;
  number_of("b") = 2;
  EXPECT_EQ(number_of("a"), 1);
  numbers.ForgetDeleted();
  EXPECT_EQ(numbers.size(), 2u);
  hosts->Retain(EpochNow());  // neither has ever sent anything
  ASSERT_TRUE(hosts->All().empty());
  EXPECT_EQ(number_of("b"), 0);
  numbers.ForgetDeleted();
  EXPECT_EQ(numbers.size(), 1u);
}

}  // namespace
}  // namespace gpusonde::serve
