// SPDX-License-Identifier: Apache-2.0
#include "server/static_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "server/ui_files.h"

namespace gpusonde::server {
namespace {

using testing::HasSubstr;

class StaticFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(web_ + "/assets");
    Write(web_ + "/index.html", "<!doctype html>" + std::string(2000, ' '));
    Write(web_ + "/assets/index-BkhWs4p3.js", "1");
    Write(web_ + "/.hidden", "x");
    Write(folder_.path() + "/secret", "x");
    std::filesystem::create_symlink(folder_.path() + "/secret", web_ + "/link");
  }
  static void Write(const std::string& path, std::string_view content) {
    ASSERT_TRUE(WriteFileAtomically(path, content).has_value());
  }
  HttpResponse Get(const HttpRequest& request) { return StaticFiles::Load(web_).value().Get(request); }

  TempFolder folder_;
  std::string web_ = folder_.path() + "/web";
};

TEST_F(StaticFilesTest, TheRootIsIndexHtml) {
  const HttpResponse response = Get({.path = "/"});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(*response.body, HasSubstr("<!doctype html>"));
  EXPECT_EQ(response.cache_control, "no-cache");
}

TEST_F(StaticFilesTest, NamesWithAHashAreKeptForEver) {
  const HttpResponse response = Get({.path = "/assets/index-BkhWs4p3.js"});
  EXPECT_EQ(response.content_type, "text/javascript; charset=utf-8");
  EXPECT_THAT(response.cache_control, HasSubstr("immutable"));
}

TEST_F(StaticFilesTest, NothingLeadsOutOfTheFolder) {
  for (const char* path : {"/../secret", "/assets/../../secret", "//secret", "/link", "/.hidden", "/assets",
                           "/assets/", "/./index.html", "", "index.html", "/etc/passwd"})
    EXPECT_EQ(Get({.path = path}).status, 404) << path;
}

TEST_F(StaticFilesTest, GzipIsSentWhereItIsAcceptedAndSmaller) {
  EXPECT_TRUE(Get({.path = "/", .accepts_gzip = true}).gzipped);
  EXPECT_FALSE(Get({.path = "/", .accepts_gzip = false}).gzipped);
  EXPECT_FALSE(Get({.path = "/assets/index-BkhWs4p3.js", .accepts_gzip = true}).gzipped);
}

TEST_F(StaticFilesTest, AClientThatHasTheFileGetsNoBody) {
  const std::string etag = Get({.path = "/"}).etag;
  const HttpResponse response = Get({.path = "/", .if_none_match = "\"other\", " + etag});
  EXPECT_EQ(response.status, 304);
  EXPECT_EQ(response.body, nullptr);
  EXPECT_EQ(response.etag, etag);
  EXPECT_EQ(Get({.path = "/", .if_none_match = "\"other\""}).status, 200);
}

TEST_F(StaticFilesTest, AMissingFolderIsAnError) {
  EXPECT_EQ(StaticFiles::Load(web_ + "/absent").error().code, ErrorCode::kNotFound);
}

TEST_F(StaticFilesTest, TheUiIsThatOfTheFirstFolderThatHasOne) {
  const HttpHandler ui = UiHandler({folder_.path() + "/absent", folder_.path(), web_});
  EXPECT_EQ(ui({.path = "/"}).status, 200);
}

TEST_F(StaticFilesTest, WithoutAUiOnePageSaysSoAndWhatToDo) {
  const HttpHandler ui = UiHandler({folder_.path() + "/<absent>"});
  const HttpResponse page = ui({.path = "/"});
  EXPECT_EQ(page.status, 503);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(*page.body, HasSubstr("make build"));
  EXPECT_THAT(*page.body, HasSubstr("/&lt;absent&gt;"));
  EXPECT_EQ(ui({.path = "/assets/index.js"}).status, 404);
}

}  // namespace
}  // namespace gpusonde::server
