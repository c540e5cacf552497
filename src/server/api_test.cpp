// SPDX-License-Identifier: Apache-2.0
#include "server/api.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "server/testing/fake_data.h"

namespace gpusonde::server {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr Id128 kId{0x0011223344556677, 0x8899aabbccddeeff};
constexpr const char* kIdText = "00112233445566778899aabbccddeeff";

class ApiTest : public testing::Test {
 protected:
  using Query = std::vector<std::pair<std::string, std::string>>;

  HttpResponse Ask(const std::string& path, const Query& query = {}) {
    const HttpHandler api =
        ApiHandler(data_, {.mode = "view", .live = false, .title = "run.sonde", .notices = [] {
                             return std::vector<std::string>{"Cut short."};
                           }});
    return api({.path = "/api/v1/" + path, .query = query});
  }
  json Get(const std::string& path, const Query& query = {}) {
    const HttpResponse response = Ask(path, query);
    EXPECT_EQ(response.status, 200) << *response.body;
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(response.cache_control, "no-store");
    return json::parse(*response.body);
  }
  // "status code: message" of an error.
  std::string Error(const std::string& path, const Query& query = {}) {
    const HttpResponse response = Ask(path, query);
    const json error = json::parse(*response.body)["error"];
    return std::to_string(response.status) + " " + error["code"].get<std::string>() + ": " +
           error["message"].get<std::string>();
  }

  FakeData data_;
};

TEST_F(ApiTest, ItIsReadyWhileQueriesAreAnswered) {
  const HttpHandler api = ApiHandler(data_, {.mode = "up"});
  EXPECT_EQ(*api({.path = "/readyz"}).body, "ready\n");
  data_.overview = Fail(ErrorCode::kIo, "day.sonde: block 7 is damaged");
  const HttpResponse failed = api({.path = "/readyz"});
  EXPECT_EQ(failed.status, 503);
  EXPECT_THAT(*failed.body, testing::HasSubstr("block 7"));
}

TEST_F(ApiTest, OnlyALiveAgentHasMetrics) {
  EXPECT_EQ(ApiHandler(data_, {.mode = "view"})({.path = "/metrics"}).status, 404);
  const auto metrics = [](const HttpRequest&) { return PlainResponse("up 1\n"); };
  EXPECT_EQ(*ApiHandler(data_, {.mode = "up", .metrics = metrics})({.path = "/metrics"}).body, "up 1\n");
}

TEST_F(ApiTest, OverviewListsTheData) {
  data_.overview = store::Overview{
      .sources = {{.source = kId, .kind = "agent", .host = "vm", .sampling_hz = 19, .cpus = 2},
                  {.source = kId, .kind = "record", .host = "vm", .cpus = 4},
                  {.source = kId, .kind = "record", .host = "other", .cpus = 8}},
      .from_ns = 1763687000000000'999,
      .to_ns = 1763687900000000'001,
      .samples = 17211,
      .kernels = 18,
      .drops = {{.reason = "ring_full", .meaning = "Samples lost.", .count = 12}}};
  const json overview = Get("overview");
  EXPECT_EQ(overview["version"], kVersion);
  EXPECT_EQ(overview["mode"], "view");
  EXPECT_EQ(overview["live"], false);
  EXPECT_EQ(overview["silent"], false);
  EXPECT_EQ(overview["title"], "run.sonde");
  EXPECT_EQ(overview["simulated"], false);
  EXPECT_EQ(overview["inject_library"], nullptr);
  EXPECT_EQ(overview["from_us"], 1763687000000000) << "rounded outwards";
  EXPECT_EQ(overview["to_us"], 1763687900000001);
  EXPECT_EQ(overview["cpus"], 12) << "the largest of each host";
  EXPECT_EQ(overview["samples"], 17211);
  EXPECT_EQ(overview["kernels"], 18);
  EXPECT_EQ(overview["sources"][0], json({{"id", kIdText}, {"host", "vm"}, {"kind", "agent"}, {"hz", 19}}));
  EXPECT_EQ(overview["sources"][1]["hz"], nullptr);
  EXPECT_EQ(overview["drops"],
            json::parse(R"([{"reason":"ring_full","meaning":"Samples lost.","lost":true,"count":12}])"));
  EXPECT_EQ(overview["notices"], json({"Cut short."}));
}

TEST_F(ApiTest, OverviewNamesTheLibraryThatProfilesGpuWork) {
  const HttpHandler api = ApiHandler(data_, {.mode = "up", .inject_library = "/opt/gpu\"sonde.so"});
  const json overview = json::parse(*api({.path = "/api/v1/overview"}).body);
  EXPECT_EQ(overview["inject_library"], "/opt/gpu\"sonde.so");
}

TEST_F(ApiTest, OverviewOfNothingHasNoTimes) {
  data_.overview = store::Overview{};
  const json overview = Get("overview");
  EXPECT_EQ(overview["from_us"], nullptr);
  EXPECT_EQ(overview["to_us"], nullptr);
  EXPECT_EQ(overview["sources"], json::array());
  EXPECT_EQ(overview["drops"], json::array());
}

TEST_F(ApiTest, StripsHaveAValueOrNullForEachBucket) {
  data_.overview = store::Overview{.sources = {{.host = "vm", .cpus = 2}}};
  data_.strip = {.from_ns = 1'000'000, .to_ns = 5'000'000, .values = {0.5, std::nullopt}};
  EXPECT_EQ(Get("strips", {{"buckets", "2"}}), json::parse(R"({
    "from_us":1000,"to_us":5000,"bucket_us":2000.0,
    "strips":[{"id":"cpu","label":"CPU","unit":"cores","max":2.0,"values":[0.5,null]}],
    "marks":[],"marks_omitted":0})"));
  EXPECT_EQ(data_.buckets, 2);
  Get("strips");
  EXPECT_EQ(data_.buckets, 600);
}

TEST_F(ApiTest, StripsWithoutACpuCountHaveNoUpperEnd) {
  data_.overview = store::Overview{};
  EXPECT_EQ(Get("strips")["strips"][0]["max"], nullptr);
}

TEST_F(ApiTest, UsageIsSummedByWhatIsAsked) {
  const json usage = Get("usage", {{"by", "pod"}, {"from_us", "1000"}});
  EXPECT_EQ(data_.selection.from_ns, 1'000'000);
  EXPECT_EQ(usage["by"], "pod");
  EXPECT_EQ(usage["from_us"], 1000);
  EXPECT_EQ(usage["groups"][0]["name"], "pod ml/a");
  EXPECT_EQ(usage["groups"][0]["busy_share"], nullptr);
  EXPECT_EQ(Get("usage")["by"], "owner");
  EXPECT_THAT(Error("usage", {{"by", "colour"}}),
              testing::StartsWith("400 invalid_argument: parameter 'by' takes owner, pod, "));
  EXPECT_THAT(Error("usage", {{"process", kId.ToHex()}}), testing::StartsWith("400 invalid_argument: "));
}

TEST_F(ApiTest, UsageIsAlsoATableAndCsv) {
  const HttpResponse csv = Ask("usage.csv", {{"by", "pod"}, {"price", "2.5"}});
  EXPECT_EQ(csv.content_type, "text/csv; charset=utf-8");
  EXPECT_THAT(*csv.body, testing::StartsWith("pod,gpus,"));
  EXPECT_THAT(*csv.body,
              testing::HasSubstr("\"pod ml/a\",0,0,0.000000,0.000000,0.000000,0.000000,,,,,0.0000,"));
  const HttpResponse text = Ask("usage.txt", {{"width", "80"}});
  EXPECT_EQ(text.content_type, "text/plain; charset=utf-8");
  EXPECT_THAT(*text.body, testing::HasSubstr("no process held a GPU"));
  EXPECT_EQ(Get("usage", {{"price", "1e3"}})["groups"][0]["idle_cost"], 0.0);
  for (const char* const price : {"", "-1", "nan", "inf", "2,5", "1e7", "0x1"})
    EXPECT_THAT(
        Error("usage", {{"price", price}}),
        testing::StartsWith("400 invalid_argument: parameter 'price' takes a number from 0 to 1000000"))
        << price;
  EXPECT_THAT(Error("usage.txt", {{"width", "1001"}}),
              testing::HasSubstr("parameter 'width' takes an integer"));
}

TEST_F(ApiTest, StripsOfAnEmptyRangeHaveNoLength) {
  data_.overview = store::Overview{};
  data_.strip = {.from_ns = 7'000, .to_ns = 5'000, .values = {std::nullopt}};
  const json strips = Get("strips", {{"from_us", "7"}});
  EXPECT_EQ(strips["from_us"], 7);
  EXPECT_EQ(strips["to_us"], 7);
  EXPECT_EQ(strips["bucket_us"], 0);
}

const store::GpuDevice kGpu{
    .device = kId, .ordinal = 3, .uuid = "GPU-1", .name = "NVIDIA X", .simulated = true};

TEST_F(ApiTest, EachDeviceHasAStripInPercent) {
  data_.overview = store::Overview{};
  data_.gpu_strips = {
      {kGpu, {.from_ns = 0, .to_ns = 2'000'000, .values = {0.25, std::nullopt}}, {0.5, 0}, {0.1, 0}}};
  data_.strip = {.from_ns = 0, .to_ns = 2'000'000, .values = {0.5, std::nullopt}};
  const json strips = Get("strips", {{"buckets", "2"}})["strips"];
  ASSERT_EQ(strips.size(), 2u);
  EXPECT_EQ(strips[0], json::parse(R"({"id":"gpu-00112233445566778899aabbccddeeff","label":"GPU 3","unit":"%",
    "max":100.0,"device":"00112233445566778899aabbccddeeff","name":"NVIDIA X","uuid":"GPU-1","ordinal":3,
    "simulated":true,"values":[25.0,null],"observed":[0.5,0.0],"partial":[0.1,0.0]})"));
  EXPECT_EQ(strips[1]["id"], "cpu");
}

TEST_F(ApiTest, MetricsOfADeviceFollowItsStripWhenAskedFor) {
  data_.overview = store::Overview{};
  data_.gpu_strips = {{kGpu, {.values = {0.5}}}};
  store::GpuDevice other = kGpu;
  other.device = {9, 9};
  data_.metric_strips = {
      {other, model::Metric::kGpuPower, {.values = {310.5}}, 700},
      {kGpu, model::Metric::kGpuMemoryUsed, {.values = {3.0 * (1 << 30)}}, 80.0 * (1 << 30)},
      {kGpu, model::Metric::kGpuThrottleReasons, {.values = {0.25}}, 1},
      {kGpu, model::Metric::kGpuPcieRx, {.values = {2e9}}, std::nullopt}};
  EXPECT_EQ(Get("strips")["strips"].size(), 2U);
  const json strips = Get("strips", {{"metrics", "1"}})["strips"];
  std::vector<std::string> ids, units;
  for (const json& strip : strips) {
    ids.push_back(strip["id"]);
    units.push_back(strip["unit"]);
  }
  const std::string own = "gpu-" + kId.ToHex();
  EXPECT_THAT(ids,
              testing::ElementsAre(own, own + "-gpu.memory.used", own + "-gpu.throttle.reasons",
                                   own + "-gpu.pcie.rx", "gpu-" + Id128{9, 9}.ToHex() + "-gpu.power", "cpu"));
  EXPECT_THAT(units, testing::ElementsAre("%", "GiB", "%", "MB/s", "W", "cores"));
  EXPECT_EQ(strips[1]["values"], json::parse("[3.0]"));
  EXPECT_EQ(strips[1]["max"], 80.0);
  EXPECT_EQ(strips[1]["metric"], "gpu.memory.used");
  EXPECT_EQ(strips[1]["simulated"], true);
  EXPECT_EQ(strips[2]["values"], json::parse("[25.0]"));
  EXPECT_EQ(strips[2]["max"], 100.0);
  EXPECT_EQ(strips[3]["values"], json::parse("[2000.0]"));
  EXPECT_EQ(strips[3]["max"], nullptr);
  EXPECT_THAT(Error("strips", {{"metrics", "2"}}), testing::StartsWith("400 invalid_argument: "));
}

TEST_F(ApiTest, EventsOfDevicesAreMarked) {
  data_.overview = store::Overview{};
  data_.marks = {.marks = {{store::DeviceMark::Kind::kThrottled, kGpu, 1'500, 2'500, 0x24},
                           {store::DeviceMark::Kind::kXid, kGpu, 5'000, 5'000, 79},
                           {store::DeviceMark::Kind::kXid, kGpu, 6'000, 6'000, 12345}},
                 .omitted = 7};
  const json strips = Get("strips");
  EXPECT_EQ(strips["marks_omitted"], 7);
  const json& marks = strips["marks"];
  EXPECT_EQ(marks[0]["kind"], "throttled");
  EXPECT_EQ(marks[0]["from_us"], 1);
  EXPECT_EQ(marks[0]["to_us"], 3);
  EXPECT_THAT(marks[0]["text"].get<std::string>(),
              testing::AllOf(testing::HasSubstr("slowed down by power cap"),
                             testing::HasSubstr("; software thermal slowdown")));
  EXPECT_EQ(marks[1]["device"], kId.ToHex());
  EXPECT_EQ(marks[1]["code"], 79);
  EXPECT_EQ(marks[1]["text"], "XID 79: the GPU has fallen off the bus");
  EXPECT_EQ(marks[2]["text"], "XID 12345");
}

TEST_F(ApiTest, DevicesCarryTheirStreams) {
  data_.devices = {
      {.device = kGpu, .kernels = 5, .busy_ns = 7, .observed_ns = 9, .partial_ns = 2, .streams = {{13, 7}}}};
  EXPECT_EQ(Get("devices", {{"from_us", "1"}})["devices"], json::parse(R"([{
    "device":"00112233445566778899aabbccddeeff","name":"NVIDIA X","uuid":"GPU-1","ordinal":3,"simulated":true,
    "label":"GPU 3","kernels":5,"busy_ns":7,"observed_ns":9,"partial_ns":2,"streams":[{"stream":13,"busy_ns":7}]}])"));
  EXPECT_EQ(data_.selection.from_ns, 1000);
  data_.devices[0].device.trace = "rank 1";
  EXPECT_EQ(Get("devices")["devices"][0]["label"], "GPU 3, rank 1");
}

TEST_F(ApiTest, GpuTimeHasIntervals) {
  // Two stacks of one kernel, 1000 ns; one launch of each was sampled at p = 0.5, 30 and 10 ns long.
  model::Profile profile;
  profile.type = model::ProfileType::kGpu;
  profile.functions = {{.name = "gemm"}, {.name = "a"}, {.name = "b"}, {.name = "main"}};
  profile.locations = {{.kind = model::FrameKind::kGpu, .lines = {{0, 0}}},
                       {.lines = {{1, 0}}},
                       {.lines = {{2, 0}}},
                       {.lines = {{3, 0}}}};
  profile.stacks = {{0, 1, 3}, {0, 2, 3}};
  profile.samples = {{.stack = 0, .count = 3, .weight_ns = 750, .launch_group = 0, .launches = {60, 1800}},
                     {.stack = 1, .count = 1, .weight_ns = 250, .launch_group = 0, .launches = {20, 200}}};
  profile.launch_groups = {{1000, {80, 2000}}};
  data_.gpu_profile = profile;
  const json tree = Get("flamegraph", {{"type", "gpu"}});
  EXPECT_EQ(tree["type"], "gpu");
  EXPECT_EQ(tree["samples"], 4);
  EXPECT_EQ(tree["nodes"]["total"], json({1000, 1000, 750, 750, 250, 250}));
  // R = 3/4, and one launch more of each: 1800 (1 + 1800/60²) = 2700, 200 (1 + 200/20²) = 300.
  // 1.96 · 1000/80 · sqrt((1/4)² 2700 + (3/4)² 300) = 450.1, the same for what is not R.
  EXPECT_EQ(tree["nodes"]["interval"], json({0, 0, 451, 451, 451, 451}));
  EXPECT_FALSE(data_.selection.while_gpu_idle);
  EXPECT_THAT(Error("flamegraph", {{"type", "gpu"}, {"while_gpu_idle", "1"}}), HasSubstr("is for type=cpu"));
}

TEST_F(ApiTest, WaitsAreSelectedByTheirKind) {
  data_.profile = model::Profile{.type = model::ProfileType::kOffCpu};
  EXPECT_EQ(Get("flamegraph", {{"type", "off_cpu"}})["type"], "off_cpu");
  EXPECT_TRUE(data_.selection.off_cpu);
  EXPECT_EQ(data_.selection.wait, std::nullopt);
  Get("flamegraph", {{"type", "off_cpu"}, {"wait", "run_queue"}});
  EXPECT_EQ(data_.selection.wait, model::ThreadState::kRunQueue);
}

TEST_F(ApiTest, ASourceFileHasTheTimesOfItsLines) {
  const auto profile_at = [](int32_t line, int64_t weight_ns) {
    return model::Profile{.functions = {{.name = "load", .file = "/src/data.py"}},
                          .locations = {{.lines = {{0, line}}}},
                          .stacks = {{0}},
                          .samples = {{.stack = 0, .weight_ns = weight_ns}, {.stack = -1, .weight_ns = 1}}};
  };
  data_.profile = profile_at(3, 30);
  data_.gpu_profile = profile_at(9, 90);
  data_.waits = profile_at(3, 300);
  EXPECT_EQ(Get("source", {{"file", "/src/data.py"}}), json::parse(R"json({
    "file":"/src/data.py", "total":{"cpu":31,"gpu":91,"waits":301},
    "lines":{"line":[3,9],"cpu_self":[30,0],"gpu_self":[0,90],"waits_self":[300,0],
             "cpu":[30,0],"gpu":[0,90],"waits":[300,0]},
    "text":null, "modified_us":null,
    "unreadable":"/src/data.py is not shown: no source folder was given (--sources)"
})json"));
  // CPU time while idle excludes GPU time and waits.
  const json idle = Get("source", {{"file", "/src/data.py"}, {"while_gpu_idle", "1"}});
  EXPECT_EQ(idle["total"], json::parse(R"({"cpu":31,"gpu":0,"waits":0})"));
  EXPECT_THAT(Error("source", {{"file", "/etc/passwd"}}), HasSubstr("404 not_found"));
  EXPECT_THAT(Error("source"), HasSubstr("400 invalid_argument: parameter 'file' is missing"));
}

TEST_F(ApiTest, ProcessesCarryTheirThreads) {
  data_.processes = {{.process = kId,
                      .pid = 411,
                      .name = "python3",
                      .command = "python3 \xFF.py",
                      .container = "ml/train-7/worker",
                      .cpu_ns = 812,
                      .started_ns = 7'000,
                      .threads = {{.tid = 412, .name = "loader", .cpu_ns = 500}}},
                     {.process = kId, .exited_ns = 9'001}};
  const json processes = Get("processes", {{"from_us", "1"}})["processes"];
  EXPECT_EQ(processes[0], json::parse(R"({"id":"00112233445566778899aabbccddeeff","pid":411,"name":"python3",
    "command":"python3 \ufffd.py","container":"ml/train-7/worker","cpu_ns":812,"started_us":7,"exited_us":null,
    "threads":[{"tid":412,"name":"loader","cpu_ns":500}]})"));
  EXPECT_EQ(processes[1]["exited_us"], 10);
  EXPECT_EQ(data_.selection.from_ns, 1000);
  EXPECT_THAT(Error("processes", {{"filter", "x"}}),
              HasSubstr("400 invalid_argument: unknown parameter 'filter'"));
}

TEST_F(ApiTest, ProcessesSayOnRequestWhatTheyUseGpusFor) {
  const Id128 idle{0, 1};
  data_.processes = {{.process = kId, .pid = 411, .cpu_ns = 812}, {.process = {0, 2}, .pid = 7, .cpu_ns = 5}};
  data_.users = {{.process = idle,
                  .pid = 9,
                  .command = "hold",
                  .observed_ns = 700,
                  .devices = {{.device = kId, .memory_bytes = 4096}}},
                 {.process = kId,
                  .pid = 411,
                  .devices = {{.device = kId, .kernels = 3, .busy_ns = 600}},
                  .overhead = store::ProfilingOverhead{.budget = 0.5, .spent = 0.25, .cost = 2}}};
  const json processes = Get("processes", {{"gpus", "1"}, {"from_us", "1"}})["processes"];
  ASSERT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes[0]["gpus"], json::parse(R"([{"device":"00112233445566778899aabbccddeeff","kernels":3,
    "busy_ns":600,"memory_bytes":null}])"));
  EXPECT_EQ(processes[0]["listening"],
            json::parse(R"({"budget":0.5,"spent":0.25,"cost":2.0,"cost_low":null,"cost_high":null})"));
  EXPECT_EQ(processes[1]["listening"], nullptr);
  EXPECT_EQ(processes[1]["gpus"], json::array());
  EXPECT_EQ(processes[1]["gpu_observed_ns"], 0);
  EXPECT_EQ(processes[2]["gpu_observed_ns"], 700);
  EXPECT_EQ(processes[2]["pid"], 9);
  EXPECT_EQ(processes[2]["command"], "hold");
  EXPECT_EQ(processes[2]["cpu_ns"], 0);
  EXPECT_EQ(processes[2]["gpus"][0]["memory_bytes"], 4096);
  EXPECT_EQ(data_.selection.from_ns, 1000);
  EXPECT_FALSE(Get("processes")["processes"][0].contains("gpus"));
}

TEST_F(ApiTest, TheFlameGraphIsTheTreeOfTheSelection) {
  model::Profile profile;
  profile.binaries = {{"train", "/opt/train", "ab12"}};
  profile.functions = {{"main", "main", "train.cpp", 3}};
  profile.locations = {{model::FrameKind::kNative, 0, 0x10, {{0, 4}}},
                       {model::FrameKind::kKernel, -1, 0, {}}};
  profile.stacks = {{0}, {1, 0}};
  profile.samples = {{0, -1, 3, 300}, {1, -1, 1, 100}};
  data_.profile = profile;
  EXPECT_EQ(Get("flamegraph", {{"type", "cpu"}, {"process", kIdText}, {"filter", "ma"}}), json::parse(R"({
    "type":"cpu","unit":"ns","total":400,"samples":4,"one_second_in":1,
    "strings":["","[unknown]","main","train.cpp"],
    "binaries":[{"name":"train","path":"/opt/train","build_id":"ab12"}],
    "functions":{"name":[1,2],"binary":[-1,0],"kind":["kernel","native"],"file":[0,3],"line":[0,3],"internal":[0,0]},
    "nodes":{"function":[-1,1,0],"parent":[-1,0,1],"self":[0,300,100],"total":[400,400,100]},
    "omitted":{"nodes":0,"total":0},"hidden":{"threads":0,"total":0}})"));
  EXPECT_EQ(data_.selection.processes, std::vector{kId});
  EXPECT_EQ(data_.selection.filter, "ma");

  const json pruned = Get("flamegraph", {{"min_total", "101"}});
  EXPECT_EQ(pruned["nodes"]["total"], json({400, 400}));
  EXPECT_EQ(pruned["omitted"], json({{"nodes", 1}, {"total", 100}}));
}

TEST_F(ApiTest, StripsOfMigInstancesAreToldApart) {
  data_.overview = store::Overview{};
  store::GpuDevice instance = kGpu;
  instance.device = {9, 9};
  instance.name = "NVIDIA X MIG 1g.10gb (instance 3/0)";
  data_.gpu_strips = {{kGpu, {.values = {0.5}}}};
  data_.metric_strips = {{kGpu, model::Metric::kGpuSmActive, {.values = {41}}, 100},
                         {instance, model::Metric::kGpuSmActive, {.values = {7}}, 100}};
  EXPECT_EQ(Get("strips", {{"metrics", "1"}})["strips"][2]["label"],
            "SM activity, MIG 1g.10gb (instance 3/0)");
}

TEST_F(ApiTest, AnEmptyFlameGraphIsTheRoot) {
  data_.profile = model::Profile{};
  const json graph = Get("flamegraph");
  EXPECT_EQ(graph["nodes"]["parent"], json({-1}));
  EXPECT_EQ(graph["total"], 0);
  EXPECT_EQ(graph["strings"], json({""}));
}

TEST_F(ApiTest, IncidentsHaveTheirAccountTheirCausesAndTheirStrips) {
  const Id128 id{1, 2};
  store::IncidentInfo info{.incident = {.incident = id,
                                        .process = {3, 4},
                                        .start_ns = 5'000'000,
                                        .slowdown = 3.1,
                                        .cause = "cpu_contention",
                                        .confidence = 0.93,
                                        .sentence = fmt::format("Steps slowed; {}.", model::kBeforeIsLater)},
                           .process_name = "train",
                           .pid = 411};
  info.evidence = {
      {.incident = id, .signal = "step.run_queue", .before = 1e6, .during = 38e6},
      {.incident = id, .signal = "cause.cpu_contention", .during = 0.9, .score = 2.5},
      {.incident = id, .signal = "host.pressure.cpu", .before = 0.1, .during = 0.8, .score = 0.5}};
  info.strips = {{"step", {1'000'000, 9'000'000, {30e6, std::nullopt}}},
                 {"thread.running", {1'000'000, 9'000'000, {0.5, 0.25}}},
                 {"thread.run_queue", {1'000'000, 9'000'000, {0.1, 1.5}}},
                 {"gpu.clock.sm", {1'000'000, 9'000'000, {1980, 900}}, 3}};
  data_.incidents = {.incidents = {info, {}}, .omitted = 2, .steps = 700};
  data_.incidents.programs = {
      {.process = id,
       .name = "train",
       .pid = 411,
       .steps = 700,
       .time_ns = 26e6,
       .between_ns = 4e6,
       .parts = {{"step.run_queue", 16e6, "CPU contention all the time."}, {"step.cpu", 10e6, ""}}}};
  data_.incidents.warnings = {{.warning = id,
                               .indicator = "temperature",
                               .start_ns = 2'000'000,
                               .incident = id,
                               .lead_ns = 3'000'000,
                               .sentence = "It gets warm."}};
  const json answer = Get("incidents", {{"buckets", "2"}});
  EXPECT_EQ(data_.buckets, 2);
  EXPECT_EQ(answer["steps"], 700);
  EXPECT_EQ(answer["omitted"], 2);
  const json& incident = answer["incidents"][0];
  EXPECT_EQ(incident["id"], id.ToHex());
  EXPECT_EQ(incident["from_us"], 5'000);
  EXPECT_TRUE(incident["to_us"].is_null());
  EXPECT_EQ(incident["account"][0]["signal"], "run_queue");
  EXPECT_EQ(incident["account"][0]["label"], "CPU taken by others");
  EXPECT_EQ(incident["causes"][0]["signal"], "cpu_contention");
  EXPECT_EQ(incident["evidence"][0]["signal"], "host.pressure.cpu");
  EXPECT_EQ(incident["strips"][0]["values"], json::parse("[30000000.0,null]"));
  std::vector<std::string> units;
  for (const json& strip : incident["strips"]) units.push_back(strip["unit"]);
  EXPECT_THAT(units, testing::ElementsAre("ns", "cores", "threads", "MHz"));
  EXPECT_EQ(incident["strips"][3]["label"], "SM clock, GPU 3");
  EXPECT_EQ(incident["shown_to_us"], 9'000);
  EXPECT_EQ(incident["before_is_later"], true);
  EXPECT_EQ(answer["incidents"][1]["before_is_later"], false);
  const json& program = answer["programs"][0];
  EXPECT_EQ(program["name"], "train");
  EXPECT_EQ(program["steps"], 700);
  EXPECT_EQ(program["step_ns"], 26e6);
  EXPECT_EQ(program["between_ns"], 4e6);
  EXPECT_EQ(program["parts"][0]["signal"], "run_queue");
  EXPECT_EQ(program["parts"][0]["label"], "CPU taken by others");
  EXPECT_EQ(program["parts"][0]["sentence"], "CPU contention all the time.");
  EXPECT_EQ(program["parts"][1]["time_ns"], 10e6);
  const json& warning = answer["warnings"][0];
  EXPECT_EQ(warning["indicator"], "temperature");
  EXPECT_TRUE(warning["device"].is_null());
  EXPECT_EQ(warning["from_us"], 2'000);
  EXPECT_TRUE(warning["to_us"].is_null());
  EXPECT_EQ(warning["lead_us"], 3'000);
  EXPECT_EQ(warning["incident"], id.ToHex());
}

TEST_F(ApiTest, AnUnchangedAnswerIsNotComputedAgain) {
  std::vector<std::string> notices;
  const HttpHandler api =
      ApiHandler(data_, {.mode = "up", .live = true, .title = "here", .notices = [&] { return notices; }});
  data_.overview = store::Overview{};
  const HttpResponse first = api({.path = "/api/v1/overview"});
  ASSERT_EQ(first.status, 200);
  ASSERT_FALSE(first.etag.empty());
  EXPECT_TRUE(first.cpu_ns.has_value());
  data_.overview = std::unexpected(gpusonde::Error{ErrorCode::kIo, "must not be asked"});
  const HttpResponse again = api({.path = "/api/v1/overview", .if_none_match = first.etag});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, nullptr);
  EXPECT_EQ(again.etag, first.etag);
  EXPECT_EQ(api({.path = "/api/v1/strips", .if_none_match = first.etag}).status, 500) << "another question";
  EXPECT_EQ(api({.path = "/api/v1/overview", .query = {{"x", "1"}}, .if_none_match = first.etag}).status,
            400);
  notices = {"The disk is full."};
  EXPECT_EQ(api({.path = "/api/v1/overview", .if_none_match = first.etag}).status, 500)
      << "a new notice changes the ETag";
}

TEST_F(ApiTest, PollsOfARevisionShareWhatTheyReadAndOthersGetTheNewest) {
  const HttpHandler api = ApiHandler(data_, {.mode = "up", .live = true, .title = "here"});
  const HttpRequest poll{.path = "/api/v1/devices", .if_none_match = "W/\"of another revision\""};
  data_.devices = {{.device = {.device = kId}, .kernels = 3}};
  const std::string first = *api(poll).body;
  data_.devices.front().kernels = 4;
  EXPECT_EQ(*api(poll).body, first);
  EXPECT_THAT(*api({.path = "/api/v1/devices"}).body, HasSubstr("\"kernels\":4"));
}

TEST_F(ApiTest, WhereNoDataArrivesAllAnswersShareWhatIsRead) {
  const HttpHandler view = ApiHandler(data_, {.mode = "view", .live = false});
  data_.devices = {{.device = {.device = kId}, .kernels = 3}};
  const std::string first = *view({.path = "/api/v1/devices"}).body;
  data_.devices.front().kernels = 4;
  EXPECT_EQ(*view({.path = "/api/v1/devices"}).body, first);
}

TEST_F(ApiTest, ASourceFileIsReadAgainThoughTheDataHasNotChanged) {
  data_.profile = model::Profile{};
  data_.gpu_profile = model::Profile{};
  data_.waits = model::Profile{};
  const HttpHandler api = ApiHandler(data_, {.mode = "up", .live = true, .title = "here"});
  HttpRequest request{.path = "/api/v1/source", .query = {{"file", "/src/data.py"}}};
  request.if_none_match = api(request).etag;
  EXPECT_FALSE(request.if_none_match.empty()) << "it marks the next request as a poll";
  EXPECT_EQ(api(request).status, 200);
}

TEST_F(ApiTest, NewDataHaveAnotherTagAfterASecond) {
  const HttpHandler api = ApiHandler(data_, {.mode = "up", .live = true, .title = "here"});
  data_.overview = store::Overview{};
  const HttpResponse first = api({.path = "/api/v1/overview"});
  data_.revision = 1;
  std::this_thread::sleep_for(std::chrono::milliseconds(1'100));
  const HttpResponse news = api({.path = "/api/v1/overview", .if_none_match = first.etag});
  EXPECT_EQ(news.status, 200);
  EXPECT_NE(news.etag, first.etag);
}

TEST_F(ApiTest, WrongParametersAreRefusedEverywhere) {
  EXPECT_THAT(Error("overview", {{"x", "1"}}),
              HasSubstr("400 invalid_argument: unknown parameter 'x'; this address takes none"));
  EXPECT_THAT(Error("strips", {{"buckets", "0"}}), HasSubstr("'buckets' takes an integer from 1 to 2000"));
  EXPECT_THAT(Error("strips", {{"buckets", "2001"}}), HasSubstr("400"));
  EXPECT_THAT(Error("flamegraph", {{"type", "heap"}}),
              HasSubstr("'type' takes cpu, gpu or off_cpu, not 'heap'"));
  EXPECT_THAT(Error("flamegraph", {{"type", "off_cpu"}, {"wait", "lunch"}}),
              HasSubstr("'wait' takes io, lock, condition, sleep, run_queue or gpu_wait, not 'lunch'"));
  EXPECT_THAT(Error("flamegraph", {{"wait", "io"}}), HasSubstr("'wait' is for type=off_cpu"));
  EXPECT_THAT(Error("flamegraph", {{"type", "off_cpu"}, {"while_gpu_idle", "1"}}),
              HasSubstr("is for type=cpu"));
  EXPECT_THAT(Error("flamegraph", {{"min_total", "-1"}}), HasSubstr("400"));
  EXPECT_THAT(Error("flamegraph", {{"tid", "1"}}), HasSubstr("needs 'process'"));
}

TEST_F(ApiTest, UnknownPathsAre404) {
  EXPECT_THAT(Error("nothing"), HasSubstr("404 not_found: there is no '/api/v1/nothing'"));
  EXPECT_THAT(Error("overview/"), HasSubstr("404"));
}

TEST_F(ApiTest, FailuresOfTheDataKeepTheirMessageAndAreNeverBadRequests) {
  data_.profile = Fail(ErrorCode::kIo, "run.sonde: block 7 is damaged");
  EXPECT_EQ(Error("flamegraph"), "500 io: run.sonde: block 7 is damaged");
  data_.profile = Fail(ErrorCode::kInvalidArgument, "no such column");
  EXPECT_EQ(Error("flamegraph"), "500 internal: no such column");
  data_.overview = Fail(ErrorCode::kUnavailable, "run.sonde is being written");
  EXPECT_EQ(Error("overview"), "503 unavailable: run.sonde is being written");
}

}  // namespace
}  // namespace gpusonde::server
