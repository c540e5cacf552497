// SPDX-License-Identifier: Apache-2.0
#include "model/short_names.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace gpusonde::model {
namespace {

TEST(ShortNames, ALongNameKeepsItsBeginningAndEnd) {
  const std::string name = "void gemm<" + std::string(100, 'x') + ", Epilogue>(float*, float const*)";
  const std::string shown = ShortNames({name})(name);
  EXPECT_TRUE(shown.starts_with("gemm<xxx")) << shown;
  EXPECT_TRUE(shown.ends_with("x, Epilogue>")) << shown;
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

TEST(ShortNames, OfCxxHaveNeitherNamespacesNorParameters) {
  for (const auto& [name, condensed] : std::initializer_list<std::pair<const char*, const char*>>{
           {"void at::native::elementwise_kernel<(int)128, (int)4, at::native::AddFunctor<c10::Half> >(int, "
            "T3)",
            "elementwise_kernel<128, 4, AddFunctor<Half> >"},
           {"void at::native::(anonymous namespace)::softmax<float, (bool)1>(float*, int)",
            "softmax<float, 1>"},
           {"void at::native::<unnamed>::CatArrayBatchedCopy<T1, (a::Kind)-2>(T1 *)",
            "CatArrayBatchedCopy<T1, -2>"},
           {"void k<f(at::Iterator&)::{lambda()#3}::operator()() const::{lambda(c10::BFloat16)#1}>(int) "
            "[clone .kd]",
            "k<f(Iterator&)::{lambda()#3}::operator()() const::{lambda(BFloat16)#1}>"},
           {"void k<4, void at::impl<Add>(at::Iterator&)::{lambda(int)#1}, void const*, void *>(int)",
            "k<4, impl<Add>(Iterator&)::{lambda(int)#1}, void const*, void *>"},
           {"void g<Body::operator()>(int)", "g<Body::operator()>"},
           {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"},
           {"sgemm_128x64_nn", "sgemm_128x64_nn"},
           {"a::b::", "b::"},
           {"::", "::"},
           {"(int)", "(int)"},
           {"void ", "void "},
           {"f)", "f)"},
           {"<(int)7", "<7"},
           {"(int)7", "7"},
           {"", ""}})
    EXPECT_EQ(CondensedName(name), condensed);
}

TEST(ShortNames, OverloadsKeepTheirParameters) {
  const std::string gemm =
      "void batched_matrix_multiplication_with_a_long_name<" + std::string(20, 'x') + ">";
  const std::string a = gemm + "(float*)", b = gemm + "(double*)";
  const ShortNames shorten({a, b});
  EXPECT_TRUE(shorten(a).ends_with("(float*)")) << shorten(a);
  EXPECT_TRUE(shorten(b).ends_with("(double*)")) << shorten(b);
}

// Two differences that are far apart: the beginning, which says what the kernel is, stays.
TEST(ShortNames, KeepTheirBeginningBesideTwoDifferences) {
  std::vector<std::string> names;
  for (const char* type : {"half", "float"})
    for (const char* tile : {"64", "32"})
      names.push_back("attention_forward<" + std::string(60, 'x') + type + std::string(60, 'y') + tile + ">");
  const ShortNames shorten({names[0], names[1], names[2], names[3]});
  std::set<std::string> shown;
  for (const std::string& name : names) {
    shown.insert(shorten(name));
    EXPECT_TRUE(shorten(name).starts_with("attention_forward<")) << shorten(name);
  }
  EXPECT_EQ(shown.size(), names.size());
}

TEST(ShortNames, KeepToANarrowWidth) {
  const std::string a = "void at::native::elementwise_kernel<(int)128, at::native::AddFunctor<float> >(int)";
  const std::string b = "void at::native::elementwise_kernel<(int)128, at::native::silu_kernel>(int)";
  const ShortNames shorten({a, b}, 28);
  EXPECT_EQ(shorten(a), "elementwise…AddFunctor<floa…");
  EXPECT_EQ(shorten(b), "elementwise…8, silu_kernel>");
  EXPECT_EQ(shorten("gelu"), "gelu");
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
}  // namespace gpusonde::model
