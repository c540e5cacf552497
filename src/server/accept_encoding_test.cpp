// SPDX-License-Identifier: Apache-2.0
#include "server/accept_encoding.h"

#include <gtest/gtest.h>

namespace gpusonde::server {
namespace {

TEST(AcceptsGzip, OnlyWhenTheHeaderAllowsIt) {
  for (const char* header :
       {"gzip", "deflate, gzip, br", "GZIP;q=0.5", "br;q=1.0 , gzip ; q=0.001", "x-gzip"})
    EXPECT_TRUE(AcceptsGzip(header)) << header;
  for (const char* header : {"", "br", "gzip;q=0", "gzip; q=0.000", "gzipped", "identity", ",,;,"})
    EXPECT_FALSE(AcceptsGzip(header)) << header;
}

}  // namespace
}  // namespace gpusonde::server
