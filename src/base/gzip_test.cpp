// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>

namespace gpusonde {
namespace {

std::string Unzip(std::string zipped, size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  std::string text(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_in = static_cast<uInt>(zipped.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  return text;
}

TEST(Gzip, UnzipsToTheSameText) {
  std::mt19937 random(1);
  for (const size_t size : {0, 1, 1000, 300'000}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random() % 5);
    for (const int level : {kGzipFast, kGzipNormal, kGzipSmall})
      EXPECT_EQ(Unzip(Gzip(text, level), size), text);
    for (char& c : text) c = static_cast<char>(random());
    EXPECT_EQ(Unzip(Gzip(text, kGzipFast), size), text) << "text that can't be compressed";
  }
}

}  // namespace
}  // namespace gpusonde
