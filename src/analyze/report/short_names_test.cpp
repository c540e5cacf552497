// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/short_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace gpusonde::analyze {
namespace {

TEST(ShortNames, ALongNameKeepsItsBeginningAndEnd) {
  const std::string name = "void gemm<" + std::string(100, 'x') + ">(float*, float const*)";
  const std::string shown = ShortNames({name})(name);
  EXPECT_TRUE(shown.starts_with("void gemm<xxx")) << shown;
  EXPECT_TRUE(shown.ends_with("x>(float*, float const*)")) << shown;
  EXPECT_EQ(ShortNames({})("a\nb\x7F"), "a\\x0ab\\x7f");
}

TEST(ShortNames, NamesThatDifferInTheirMiddleLookDifferent) {
  std::vector<std::string> names;
  for (const char* what : {"AddFunctor<float>", "AddFunctor<half>", "gelu", "copy"})
    names.push_back(
        "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl<" +
        std::string(what) + ">(at::TensorIteratorBase &, const T1 &)::[lambda(int)]>(int, T3)");
  const std::vector<std::string_view> views(names.begin(), names.end());
  const ShortNames shorten(views);
  std::set<std::string> shown;
  for (const std::string& name : names) shown.insert(shorten(name));
  EXPECT_EQ(shown.size(), names.size());
  EXPECT_NE(shorten(names[2]).find("gelu"), std::string::npos) << shorten(names[2]);
  for (const std::string& text : shown) EXPECT_LE(text.size(), 76u);  // an ellipsis is three bytes
}

TEST(ShortNames, CharactersStayWhole) {
  const auto name = [](const std::string& middle) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "é";
    text += middle;
    for (int i = 0; i < 60; ++i) text += "ü";
    return text;
  };
  const std::string a = name("a"), b = name("ab");
  const ShortNames shorten({a, b});
  EXPECT_NE(shorten(a), shorten(b));
  for (const std::string& shown : {shorten(a), shorten(b), ShortNames({})(a)})
    EXPECT_EQ(ToUtf8(shown), shown);
}

}  // namespace
}  // namespace gpusonde::analyze
