#include <array>

#include <catch2/catch.hpp>

#include "sim/base/units.h"
#include "sim/base/yaml.h"

namespace rehearse {
namespace {

YamlFile parsed(const std::string& text) {
  Result<YamlFile> file = YamlFile::parse(text, "job.yaml");
  INFO((file ? "" : to_string(file.error())));
  REQUIRE(file);
  return *file;
}

std::string errors_of(const YamlFile& file) {
  const Status status = file.status();
  return status ? "no error" : to_string(status.error());
}

TEST_CASE("values are read by their type") {
  const YamlFile file = parsed(
      "name: ring\n"
      "tokens: 300e9\n"
      "ratio: 0.5\n"
      "overlap: false\n"
      "latency: 5 us\n"
      "rates: [1 GB/s, 8 Gbit/s]\n"
      "policy: lease\n");
  const YamlMap map = file.root();
  constexpr std::array<std::string_view, 2> kPolicies = {"fifo", "lease"};
  CHECK(map.required<std::string>("name") == "ring");
  CHECK(map.required<std::int64_t>("tokens") == 300'000'000'000);
  CHECK(map.required<double>("ratio") == 0.5);
  CHECK(map.required<bool>("overlap") == false);
  CHECK(map.required<Seconds>("latency")->us() == Approx(5));
  CHECK(map.list<ByteRate>("rates") == std::vector{ByteRate::gb_per_s(1), ByteRate::gbit_per_s(8)});
  CHECK(map.choice("policy", kPolicies) == 1U);
  CHECK_FALSE(map.optional<Seconds>("absent"));
  map.no_other_keys();
  CHECK(errors_of(file) == "no error");
}

TEST_CASE("every error of a file is reported at once, in the order of its lines") {
  const YamlFile file = parsed(
      "plan:\n"
      "  data: many\n"
      "  tensr: 8\n"
      "links:\n"
      "  - rate: 10\n"
      "  - 3\n"
      "overlap: yes\n"
      "overlap: no\n");
  const YamlMap root = file.root();
  // Asked for in another order than that of the file.
  root.optional<bool>("overlap");
  for (const YamlMap& link : root.maps("links")) link.required<ByteRate>("rate");
  const auto plan = root.map("plan");
  REQUIRE(plan);
  plan->required<std::int64_t>("data");
  plan->optional<std::int64_t>("tensor");
  plan->required<std::int64_t>("pipeline");
  plan->no_other_keys();
  root.no_other_keys();
  CHECK(errors_of(file) ==
        "job.yaml:2:3: plan.pipeline: is missing\n"
        "job.yaml:2:9: plan.data: 'many' is not a number; a whole number\n"
        "job.yaml:3:3: plan.tensr: unknown key; did you mean 'tensor'?\n"
        "job.yaml:5:11: links[0].rate: '10' has no unit; one of B/s, kB/s, MB/s, GB/s, TB/s, "
        "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, KiB/s, MiB/s, GiB/s, TiB/s\n"
        "job.yaml:6:5: links[1]: is not a mapping; keys and values\n"
        "job.yaml:7:10: overlap: 'yes' is neither true nor false\n"
        "job.yaml:8:1: overlap: appears twice; each key once");
}

TEST_CASE("a misspelt required key is suggested") {
  const YamlFile file = parsed("latncy: 5 us\n");
  const YamlMap root = file.root();
  CHECK_FALSE(root.required<Seconds>("latency"));
  root.no_other_keys();
  CHECK(errors_of(file) ==
        "job.yaml:1:1: latency: is missing\n"
        "job.yaml:1:1: latncy: unknown key; did you mean 'latency'?");
}

TEST_CASE("a wrong value makes no other key unknown unless it is misspelt") {
  const YamlFile file = parsed("kind: sphere\nradius: 2\nhieght: 3\n");
  const YamlMap root = file.root();
  root.optional<double>("height");
  root.report("kind", "is no shape", "circle, or square");
  root.no_other_keys();
  CHECK(errors_of(file) ==
        "job.yaml:1:7: kind: is no shape; circle, or square\n"
        "job.yaml:3:1: hieght: unknown key; did you mean 'height'?");
}

TEST_CASE("words of a file of another kind are not repeated") {
  const YamlFile file = parsed("root:x: 0\nsecret: word\n");
  const YamlMap root = file.root();
  root.optional<Seconds>("latency");
  root.no_other_keys();
  CHECK(errors_of(file) == "job.yaml:1:1: has none of the keys of such a file; one of latency");

  const YamlFile typing = parsed("latncy: 5 us\nsecret: word\n");
  const YamlMap mistyped = typing.root();
  mistyped.optional<Seconds>("latency");
  mistyped.no_other_keys();
  CHECK(errors_of(typing) ==
        "job.yaml:1:1: latncy: unknown key; did you mean 'latency'?\n"
        "job.yaml:2:1: secret: unknown key; one of latency");
}

TEST_CASE("a value of another shape is an error") {
  const YamlFile file = parsed("a: [1, 2]\nb: {c: 1}\nd: 3\n");
  const YamlMap root = file.root();
  CHECK_FALSE(root.optional<double>("a"));
  CHECK(root.list<double>("b").empty());
  CHECK_FALSE(root.map("d"));
  CHECK(errors_of(file) ==
        "job.yaml:1:4: a: is not a single value; one value\n"
        "job.yaml:2:4: b: is not a sequence; a list such as [a, b]\n"
        "job.yaml:3:4: d: is not a mapping; keys and values");
}

TEST_CASE("a choice suggests the nearest name") {
  constexpr std::array<std::string_view, 2> kKinds = {"nvlink", "ethernet"};
  const YamlFile file = parsed("kind: nvlnk\n");
  CHECK_FALSE(file.root().choice("kind", kKinds));
  CHECK(errors_of(file) == "job.yaml:1:7: kind: unknown value 'nvlnk'; did you mean 'nvlink'?");
}

TEST_CASE("numbers are finite, whole if required, and without unit") {
  const YamlFile file = parsed("a: .inf\nb: 2.5\nc: 5 us\nd: inf\n");
  const YamlMap root = file.root();
  CHECK_FALSE(root.optional<double>("a"));
  CHECK_FALSE(root.optional<std::int64_t>("b"));
  CHECK_FALSE(root.optional<double>("c"));
  CHECK_FALSE(root.optional<double>("d"));
  CHECK(errors_of(file) ==
        "job.yaml:1:4: a: '.inf' is not a number; a number without a unit\n"
        "job.yaml:2:4: b: '2.5' is not a whole number\n"
        "job.yaml:3:4: c: '5 us' is not a number; a number without a unit\n"
        "job.yaml:4:4: d: 'inf' is not finite");
}

TEST_CASE("numbers out of range are refused with line and column") {
  const YamlFile file = parsed(
      "a: 8e15\nb: 80000000000000000\nc: 12345678901234567890123\nd: 1e31\ne: 1e9 TB/s\nf: 1e15\n");
  const YamlMap root = file.root();
  for (const char* key : {"a", "b", "c"}) CHECK_FALSE(root.optional<std::int64_t>(key));
  CHECK_FALSE(root.optional<double>("d"));
  CHECK_FALSE(root.optional<ByteRate>("e"));
  CHECK(root.optional<std::int64_t>("f") == 1'000'000'000'000'000);
  CHECK(errors_of(file) ==
        "job.yaml:1:4: a: '8e15' is out of range; at most 1e+15\n"
        "job.yaml:2:4: b: '80000000000000000' is out of range; at most 1e+15\n"
        "job.yaml:3:4: c: '12345678901234567890123' is out of range; at most 1e+15\n"
        "job.yaml:4:4: d: '1e31' is out of range; at most 1e+30\n"
        "job.yaml:5:4: e: '1e9 TB/s' is out of range; at most 1e+18 B/s");
}

TEST_CASE("a key may have a narrower range") {
  const YamlFile file = parsed("a: 0\nb: 2.5\nc: 1001 s\nd: 7\n");
  const YamlMap root = file.root();
  CHECK_FALSE(root.within<std::int64_t>("a", 1, 100));
  CHECK_FALSE(root.within("b", 0.5, 2.0));
  CHECK_FALSE(root.within("c", Seconds::s(0), Seconds::s(1000)));
  CHECK(root.within<std::int64_t>("d", 7, 7) == 7);
  CHECK_FALSE(root.within("e", 0.0, 1.0));  // absent, which is no error
  CHECK(errors_of(file) ==
        "job.yaml:1:4: a: 0 is out of range; a whole number from 1 to 100\n"
        "job.yaml:2:4: b: 2.5 is out of range; a number from 0.5 to 2\n"
        "job.yaml:3:4: c: 1001 s is out of range; 0 s to 1000 s");
}

TEST_CASE("a second document is refused with its place") {
  for (const auto& [text, place] :
       std::initializer_list<std::pair<std::string, std::string>>{{"a: 1\n---\na: 2\n", "2:1"},
                                                                  {"a: 1\n...\nb: 2\n", "3:1"},
                                                                  {"{a: 1}\nb: 2\n", "2:1"},
                                                                  {"  a: 1\nb: 2\n", "2:1"},
                                                                  {"&x\n  a: 1\nb: 2\n", "3:1"},
                                                                  {"? \n%Y\nb: 2\n", "3:1"}}) {
    const Result<YamlFile> file = YamlFile::parse(text, "job.yaml");
    INFO(text);
    REQUIRE_FALSE(file);
    CHECK(to_string(file.error()) ==
          "job.yaml:" + place +
              ": is a second YAML document, or text after the first; one document in a file");
  }
  CHECK(YamlFile::parse("---\na: 1\n", "job.yaml"));
}

TEST_CASE("a value that is not a mapping is refused with its place") {
  const auto error_of = [](const std::string& text) {
    const Result<YamlFile> file = YamlFile::parse(text, "job.yaml");
    return file ? "no error" : to_string(file.error());
  };
  CHECK(error_of("- a\n- b\n") == "job.yaml:1:1: is not a mapping; keys and values");
  CHECK(error_of("a: [1, 2\n").starts_with("job.yaml:2:1: not valid YAML: "));
  CHECK(to_string(YamlFile::load("no_such_file.yaml").error()) ==
        "no_such_file.yaml: cannot be read: No such file or directory");
}

TEST_CASE("a mapping over another: keys of both, inner mappings too, errors at their place") {
  const YamlFile file = parsed(
      "base:\n"
      "  plan: {data: 2, tensor: four}\n"
      "  links: [1, 2]\n"
      "  fabric: {kind: ring}\n"
      "own:\n"
      "  plan: {data: 8, tensr: 1}\n"
      "  links: [3]\n"
      "  fabric: switch\n");
  const YamlMap root = file.root();
  const YamlMap both = root.map("own")->over(*root.map("base"));
  CHECK(both.keys() == std::vector<std::string>{"plan", "links", "fabric"});
  CHECK(both.list<std::int64_t>("links") == std::vector<std::int64_t>{3});
  CHECK_FALSE(both.is_map("fabric"));
  CHECK(both.optional<std::string>("fabric") == "switch");
  const YamlMap plan = *both.map("plan");
  CHECK(plan.optional<std::int64_t>("data") == 8);
  CHECK_FALSE(plan.optional<std::int64_t>("tensor"));
  plan.report("absent", "is missing");
  plan.no_other_keys();
  CHECK(errors_of(file) ==
        "job.yaml:2:27: base.plan.tensor: 'four' is not a number; a whole number\n"
        "job.yaml:6:9: own.plan.absent: is missing\n"
        "job.yaml:6:19: own.plan.tensr: unknown key; did you mean 'tensor'?");
}

TEST_CASE("scalars are read after substitution") {
  const YamlFile file = parsed(
      "plan: {data: $n, tensor: $t}\n"
      "links: [$n, 2]\n");
  const YamlMap map = file.root().filled([](const std::string& text) -> Result<std::string> {
    if (text == "$t") return fail("unknown parameter 't'", "n");
    return text == "$n" ? "7" : text;
  });
  CHECK(map.map("plan")->required<std::int64_t>("data") == 7);
  CHECK(map.list<double>("links") == std::vector<double>{7, 2});
  CHECK_FALSE(map.is_list_of_maps("links"));
  CHECK_FALSE(map.map("plan")->required<std::int64_t>("tensor"));
  CHECK(errors_of(file) == "job.yaml:1:26: plan.tensor: unknown parameter 't'; n");
}

}  // namespace
}  // namespace rehearse
