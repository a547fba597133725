// The keys of a file, from the calls of its reader.
#include <algorithm>
#include <array>

#include <catch2/catch.hpp>

#include "sim/base/units.h"
#include "sim/base/yaml.h"
#include "sim/base/yaml_schema.h"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 2> kShapes = {"ring", "tree"};

/// A reader whose calls depend on what it has read.
void read(const std::filesystem::path& path) {
  const Result<YamlFile> file = YamlFile::load(path);
  if (!file) return;
  const YamlMap root = file->root();
  (void)root.required<std::string>("name");
  (void)root.within<std::int64_t>("ranks", 1, 64);
  if (const auto shape = root.choice("shape", kShapes); shape && *shape == 1)
    (void)root.optional<Seconds>("latency");
  for (const YamlMap& job : root.maps("jobs")) {
    if (job.is_map("plan"))
      (void)job.map("plan")->optional<bool>("zero");
    else
      (void)job.optional<double>("plan");
    job.no_other_keys();
  }
  if (const auto free = root.map("sizes"))
    for (const std::string& key : free->keys()) (void)free->optional<Bytes>(key);
  if (const auto groups = root.map("groups"))
    for (const std::string& name : groups->keys())
      if (const auto group = groups->map(name)) (void)group->optional<Seconds>("time");
  root.no_other_keys();
}

const YamlKey& key_of(const YamlMapping& mapping, const std::string& name) {
  const auto at = std::find_if(mapping.keys.begin(), mapping.keys.end(),
                               [&](const YamlKey& key) { return key.name == name; });
  REQUIRE(at != mapping.keys.end());
  return *at;
}

TEST_CASE("a reader's calls describe its file, whatever they depend on") {
  YamlKeys keys = describe_reader(read);
  const YamlMapping root = keys.at("");
  CHECK(root.closed);
  CHECK(key_of(root, "name").required);
  const YamlKey ranks = key_of(root, "ranks");
  CHECK_FALSE(ranks.required);
  CHECK(ranks.forms ==
        std::vector<YamlForm>{{.kind = YamlForm::Kind::kWhole, .least = 1.0, .most = 64.0}});
  CHECK(key_of(root, "shape").forms.front().names == std::vector<std::string>{"ring", "tree"});
  // Asked for only with another value of another key, two levels down, and under any name.
  CHECK(key_of(root, "latency").forms.front().unit == "s");
  CHECK(key_of(keys.at("jobs[]"), "plan").forms.size() == 2);
  CHECK(key_of(keys.at("jobs[].plan"), "zero").forms.front().kind == YamlForm::Kind::kFlag);
  CHECK(keys.at("jobs[]").closed);
  CHECK_FALSE(keys.at("jobs[].plan").closed);
  CHECK(keys.at("sizes").other.front().unit == "B");
}

TEST_CASE("names that a file gives are described as any, with what is below them") {
  YamlKeys keys = describe_reader(read, {"{name: a, groups: {first: {time: 1 s}, second: {}}}"});
  CHECK(keys.at("groups").keys.empty());
  CHECK(keys.at("groups").other.front().kind == YamlForm::Kind::kMap);
  CHECK(key_of(keys.at("groups.any"), "time").forms.front().unit == "s");
  CHECK_FALSE(keys.contains("groups.first"));
}

TEST_CASE("files are read as ever while none is described") {
  const Result<YamlFile> file = YamlFile::parse("name: x\n", "described.yaml");
  REQUIRE(file);
  CHECK(file->root().required<std::string>("name") == "x");
}

}  // namespace
}  // namespace rehearse
