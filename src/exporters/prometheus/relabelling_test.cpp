// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/relabelling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/text.h"

namespace gpusonde::exporters::prometheus {
namespace {

using testing::HasSubstr;

// The labels after a rule, as in an exposition; "dropped" without the series.
std::string Relabelled(const std::string& rule) {
  const auto rules = Relabelling::Parse("[" + rule + "]");
  if (!rules.has_value()) return rules.error().message;
  std::vector<OwnedLabel> labels = {{"namespace", "ml"}, {"pod", "train-7"}, {"team_a", "x"}};
  if (!rules->Apply("gpusonde_gpu_kernels_total", labels)) return "dropped";
  std::string text;
  for (const OwnedLabel& label : labels) text += (text.empty() ? "" : ",") + label.name + "=" + label.value;
  return text;
}

TEST(Relabelling, ReplaceSetsALabelFromOthers) {
  EXPECT_EQ(Relabelled(R"json({"source_labels":["namespace","pod"],"target_label":"workload"})json"),
            "namespace=ml,pod=train-7,team_a=x,workload=ml;train-7");
  EXPECT_EQ(
      Relabelled(
          R"json({"source_labels":["pod"],"regex":"(.*)-([0-9]+)","target_label":"pod","replacement":"${1}_$2$$"})json"),
      "namespace=ml,pod=train_7$,team_a=x");
  EXPECT_EQ(
      Relabelled(
          R"json({"source_labels":["pod"],"regex":"train","target_label":"pod","replacement":"y"})json"),
      "namespace=ml,pod=train-7,team_a=x")
      << "a part is no match";
  EXPECT_EQ(Relabelled(R"json({"source_labels":["absent"],"target_label":"pod"})json"),
            "namespace=ml,team_a=x")
      << "an empty value removes a label";
  EXPECT_EQ(Relabelled(R"json({"target_label":"cluster","replacement":"eu","separator":""})json"),
            "namespace=ml,pod=train-7,team_a=x,cluster=eu");
}

TEST(Relabelling, KeepAndDropSeries) {
  EXPECT_EQ(Relabelled(R"json({"action":"drop","source_labels":["namespace"],"regex":"kube-.*|ml"})json"),
            "dropped");
  EXPECT_EQ(Relabelled(R"json({"action":"keep","source_labels":["namespace"],"regex":"kube-.*"})json"),
            "dropped");
  EXPECT_EQ(Relabelled(R"json({"action":"drop","source_labels":["__name__"],"regex":"gpusonde_gpu_.*"})json"),
            "dropped");
  EXPECT_EQ(Relabelled(R"json({"action":"keep","source_labels":["namespace"],"regex":"ml"})json"),
            "namespace=ml,pod=train-7,team_a=x");
}

TEST(Relabelling, LabelsByTheirNames) {
  EXPECT_EQ(Relabelled(R"json({"action":"labelmap","regex":"team_(.*)"})json"),
            "namespace=ml,pod=train-7,team_a=x,a=x");
  EXPECT_EQ(Relabelled(R"json({"action":"labelmap","regex":"team_(.*)","replacement":"not a name"})json"),
            "namespace=ml,pod=train-7,team_a=x");
  EXPECT_EQ(Relabelled(R"json({"action":"labeldrop","regex":"team_.*|pod"})json"), "namespace=ml");
  EXPECT_EQ(Relabelled(R"json({"action":"labelkeep","regex":"pod"})json"), "pod=train-7");
}

TEST(Relabelling, RulesApplyInTheirOrder) {
  EXPECT_EQ(
      Relabelled(R"json({"source_labels":["pod"],"target_label":"p"},{"action":"labeldrop","regex":"pod"},
                          {"action":"keep","source_labels":["p"],"regex":"train-7"})json"),
      "namespace=ml,team_a=x,p=train-7");
}

TEST(Relabelling, RulesThatAreNoneSayWhichAndWhy) {
  EXPECT_EQ(Relabelling::Parse("{}").error().message, "the rules are not a JSON array");
  EXPECT_EQ(Relabelling::Parse("[").error().message, "the rules are not a JSON array");
  EXPECT_THAT(Relabelled(R"json({"target_label":"a"},5)json"), HasSubstr("rule 2 is no object"));
  EXPECT_THAT(Relabelled(R"json({"target":"a"})json"), HasSubstr("rule 1 has the unknown key target"));
  EXPECT_THAT(Relabelled(R"json({"target_label":7})json"), HasSubstr("target_label is no text"));
  EXPECT_THAT(Relabelled(R"json({"target_label":"a-b"})json"), HasSubstr("needs a target_label"));
  EXPECT_THAT(Relabelled(R"json({"target_label":"__name__"})json"), HasSubstr("rename"));
  EXPECT_THAT(Relabelled(R"json({"action":"hashmod"})json"), HasSubstr("action hashmod"));
  EXPECT_THAT(Relabelled(R"json({"action":"keep"})json"), HasSubstr("needs source_labels"));
  EXPECT_THAT(Relabelled(R"json({"action":"labeldrop","regex":"("})json"), HasSubstr("regex ("));
  EXPECT_TRUE(Relabelling::Parse("[]")->empty());
}

TEST(Relabelling, AHostileValueTakesNoLongTime) {
  const auto rules =
      Relabelling::Parse(R"json([{"action":"drop","source_labels":["pod"],"regex":"(a+)+b"}])json").value();
  std::vector<OwnedLabel> labels = {{"pod", std::string(200, 'a')}};
  EXPECT_TRUE(rules.Apply("x", labels));
  labels[0].value.assign(1 << 20, 'b');
  EXPECT_TRUE(rules.Apply("x", labels)) << "too long to match";
}

TEST(Relabelling, AnExpositionNeverHasASeriesTwice) {
  const auto rules = Relabelling::Parse(R"json([{"action":"labeldrop","regex":"pid"}])json").value();
  TextWriter writer(Format::kText, &rules);
  writer.Begin(kProcessLaunches);
  writer.Write({}, {{"pid", "1"}, {"command", "a"}}, int64_t{1});
  writer.Write({}, {{"pid", "2"}, {"command", "a"}}, int64_t{2});
  writer.Write({}, {{"pid", "3"}, {"command", "b\n"}}, int64_t{3});
  writer.WriteOwn({});
  const std::string text = writer.Finish();
  EXPECT_THAT(
      text,
      HasSubstr("launches_total{command=\"a\"} 1\ngpusonde_process_launches_total{command=\"b\\n\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("gpusonde_series_repeated 1\n"));
}

}  // namespace
}  // namespace gpusonde::exporters::prometheus
