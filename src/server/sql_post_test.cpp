// SPDX-License-Identifier: Apache-2.0
#include "server/sql_post.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gpusonde::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// What the API was asked.
class SqlPosts : public testing::Test {
 protected:
  HttpResponse Post(std::string body, std::string type, std::string path = std::string(kQueryPath)) {
    return posts_({.path = std::move(path),
                   .query = {{"hosts", "node-1"}},
                   .content_type = std::move(type),
                   .body = std::move(body),
                   .caller = Caller{.name = "root", .scope = Scope::kAdmin}});
  }

  std::vector<HttpRequest> asked_;
  HttpHandler posts_ = AnsweringSqlPosts([this](const HttpRequest& request) {
    asked_.push_back(request);
    return JsonResponse("{}");
  });
};

TEST_F(SqlPosts, AStatementAsTextIsTheParameterSql) {
  const std::string statement = "SELECT 'a&b=c%20' || '+'\n-- " + std::string(100'000, 'x');
  for (const char* type : {"text/plain", "Text/Plain ; charset=utf-8"}) {
    asked_.clear();
    EXPECT_EQ(Post(statement, type).status, 200);
    ASSERT_EQ(asked_.size(), 1);
    EXPECT_THAT(asked_[0].query, ElementsAre(Pair("hosts", "node-1"), Pair("sql", statement)));
    EXPECT_THAT(asked_[0].body, IsEmpty());
    EXPECT_EQ(asked_[0].caller->name, "root");
  }
}

TEST_F(SqlPosts, AnObjectHasParameters) {
  EXPECT_EQ(Post(R"({"sql":"SELECT 1","limit":5})", "application/json").status, 200);
  ASSERT_EQ(asked_.size(), 1);
  EXPECT_THAT(asked_[0].query, testing::UnorderedElementsAre(Pair("hosts", "node-1"), Pair("sql", "SELECT 1"),
                                                             Pair("limit", "5")));
}

TEST_F(SqlPosts, OtherBodiesAreRefused) {
  for (const char* body :
       {"", "SELECT 1", "[]", R"("SELECT 1")", R"({"sql":["SELECT 1"]})", R"({"limit":1.5})"})
    EXPECT_EQ(Post(body, "application/json").status, 400) << body;
  for (const char* type : {"", "application/x-www-form-urlencoded", "text/html", "text/plainer"}) {
    const HttpResponse answer = Post("SELECT 1", type);
    EXPECT_EQ(answer.status, 415) << type;
    EXPECT_THAT(*answer.body, HasSubstr("text/plain, or application/json"));
  }
  EXPECT_EQ(Post("SELECT 1", "text/plain", "/api/v1/overview").status, 405);
  EXPECT_THAT(asked_, IsEmpty());
}

}  // namespace
}  // namespace gpusonde::server
