// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/samples.h"
#include "spool/codec.h"
#include "spool/upload.h"

namespace gpusonde::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

class ServeMetricsTest : public testing::Test {
 protected:
  std::string Scrape(std::string accept = {}) {
    return *MetricsHandler({.hosts = *hosts_,
                            .ingest = counts_,
                            .queries = times_,
                            .agents = agents_,
                            .pages = pages_,
                            .tls = nullptr,
                            .access = nullptr})({.path = "/metrics", .accept = std::move(accept)})
                .body;
  }
  int Send(const std::string& host, int64_t sample_ns, int64_t first = 1) {
    model::BatchBuilder builder(model::kSamples);
    builder.Append({.time_ns = sample_ns - 5, .process = {1, 1}, .tid = 7});
    builder.Append({.time_ns = sample_ns, .process = {1, 1}, .tid = 7});
    builder.Append({.time_ns = sample_ns - 9, .process = {1, 1}, .tid = 7});
    std::string body;
    spool::AppendToUpload(spool::EncodeBatch(builder.Take()).value(), body);
    const int64_t day = store::DayOf(now_ns_).time_since_epoch().count();
    return IngestRoutes(*hosts_, counts_, [this] { return now_ns_; })
        .uploads({.path = "/api/v1/frames",
                  .query = {{"host", host},
                            {"spool", Id128{7, 1}.ToHex()},
                            {"day", std::to_string(day)},
                            {"first", std::to_string(first)}},
                  .body = std::move(body)})
        .status;
  }

  const int64_t now_ns_ = EpochNow();
  TempFolder folder_;
  std::unique_ptr<Hosts> hosts_ = Hosts::Open({.folder = folder_ / "hosts", .max_hosts = 1000}).value();
  IngestCounts counts_;
  QueryTimes times_;
  server::HttpCounts agents_, pages_;
};

TEST_F(ServeMetricsTest, AgentsAreCountedWithTheAgeOfTheirSpools) {
  EXPECT_EQ(Send("node-1", now_ns_ - 3600 * kNanosPerSecond), 200);
  EXPECT_EQ(Send("node-2", now_ns_), 200);
  EXPECT_EQ(Send("../x", now_ns_), 400);
  EXPECT_EQ(Send("node-3", std::numeric_limits<int64_t>::min() + 10), 200) << "an age that doesn't fit";
  hosts_->Find("node-2").value()->SetLastSeen(now_ns_ - 151 * kNanosPerSecond);
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_hosts 3\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_agents 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_host_spool_age_seconds{host=\"node-1\"} 3600\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_host_spool_age_seconds{host=\"node-2\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("spool_age_seconds{host=\"node-3\"}")));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_requests_total{outcome=\"accepted\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_requests_total{outcome=\"refused\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_frames_total 3\n"));
  EXPECT_THAT(text, Not(HasSubstr("gpusonde_tls_")));
  EXPECT_TRUE(Scrape("application/openmetrics-text").ends_with("# EOF\n"));
}

TEST_F(ServeMetricsTest, SeriesOfHostsAreBounded) {
  for (size_t i = 0; i < kMaxHostSeries + 3; ++i)
    ASSERT_TRUE(hosts_->FindOrMake(fmt::format("node-{:04}", i)).has_value());
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_hosts 259\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_serve_hosts_omitted 3\n"));
  EXPECT_THAT(text, HasSubstr("{host=\"node-0255\"}"));
  EXPECT_THAT(text, Not(HasSubstr("{host=\"node-0256\"}")));
}

TEST_F(ServeMetricsTest, QueriesAreTimedByPathAndStrangePathsTogether) {
  const auto timed = Timing([](const server::HttpRequest&) { return server::PlainResponse("x"); }, times_);
  for (const char* path : {"/api/v1/usage", "/api/v1/usage", "/api/v1/\n", "/api/v1/nonsense"})
    EXPECT_EQ(*timed({.path = path}).body, "x");
  times_.Add("/api/v1/strips", 2 * kNanosPerSecond);
  for (const char* path : {"/api/v1/compare", "/api/v1/hosts", "/api/v1/query", "/api/v1/timeline",
                           "/api/v1/usage.csv", "/api/v1/work"})
    times_.Add(path, 1);
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("\ngpusonde_queries_total{path=\"/api/v1/usage\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_queries_total{path=\"/api/v1/compare\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_queries_total{path=\"other\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_query_seconds_total{path=\"/api/v1/strips\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_slow_queries_total{path=\"/api/v1/strips\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\ngpusonde_slow_queries_total{path=\"/api/v1/usage\"} 0\n"));
}

}  // namespace
}  // namespace gpusonde::serve
