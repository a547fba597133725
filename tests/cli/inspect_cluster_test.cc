// inspect --cluster: the drawing as text, as JSON and as SVG.
#include <filesystem>

#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/json_check.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

using test::Json;
using test::Ran;

const std::string kDgx = "examples/clusters/dgx_h100_x4.yaml";

/// What is wrong with a text as XML: tags that are not closed in order, attributes without quotes,
/// stray "&" or "<". Enough of XML for what the program writes.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  std::size_t roots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char ch = text[at];
    if (ch == '&') {
      const std::size_t end = text.find(';', at);
      const std::string entity = text.substr(at, end - at + 1);
      if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;")
        return "entity " + entity;
      at = end + 1;
    } else if (static_cast<unsigned char>(ch) < ' ' && ch != '\n') {
      return "a control character";
    } else if (ch != '<') {
      ++at;
    } else {
      std::size_t end = at + 1;
      for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) {
        if (text[end] == '"') quoted = !quoted;
        if (text[end] == '<') return "'<' in a tag";
      }
      if (end == text.size()) return "a tag that does not end";
      const std::string tag = text.substr(at + 1, end - at - 1);
      const std::string name = tag.substr(0, tag.find_first_of(" \n/"));
      if (tag.front() == '/') {
        if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + ">";
        open.pop_back();
      } else {
        if (open.empty() && ++roots > 1) return "two roots";
        if (tag.back() != '/') open.push_back(name);
        for (std::size_t eq = tag.find('='); eq != std::string::npos;) {
          if (eq + 1 >= tag.size() || tag[eq + 1] != '"') return "an attribute of " + name;
          const std::size_t close = tag.find('"', eq + 2);
          if (close == std::string::npos) return "an attribute of " + name;
          eq = tag.find('=', close);
        }
      }
      at = end + 1;
    }
  }
  return open.empty() ? roots == 1 ? "" : "no root" : "<" + open.back() + "> is not closed";
}

TEST_CASE("the XML check finds errors") {
  CHECK(xml_problem("<a b=\"c\"><d/>&amp;</a>\n").empty());
  for (const char* bad : {"", "<a>", "<a></b>", "<a b=c/>", "<a/><b/>", "<a>&x;</a>", "<a <b/>"})
    CHECK_FALSE(xml_problem(bad).empty());
}

TEST_CASE("a cluster as text: nodes, fabric, link types with their source") {
  const Ran ran = test::rehearse({"inspect", "--cluster", kDgx});
  CHECK(ran.code == 0);
  CHECK(ran.errors.empty());
  for (const char* line : {"4 × node: 8 × h100_sxm5_80 (node0 … node3)\n", "\nFabric\n",
                           "32 × ib_ndr_400 to nic", "datasheet   NCCL-ISS"})
    CHECK(ran.out.find(line) != std::string::npos);
  const Ran ethernet =
      test::rehearse({"inspect", "--cluster", "examples/clusters/ethernet_v100.yaml"});
  CHECK(ethernet.out.find("node1/nic0-switch: 50.0 % of its rate from 1.00 min on") !=
        std::string::npos);
}

TEST_CASE("a torus is one group of nodes") {
  const Ran ran = test::rehearse({"inspect", "--cluster", "examples/clusters/torus.yaml"});
  CHECK(ran.out.find("64 × node: 1 × a100_sxm4_40") != std::string::npos);
}

TEST_CASE("a cluster as JSON: keys and numbers in SI units") {
  const Json json = test::json_of({"inspect", "--cluster", "examples/clusters/ethernet_v100.yaml"});
  test::check_values(json);
  for (const char* key : {"cluster.nodes",
                          "cluster.devices",
                          "cluster.vertices",
                          "cluster.links",
                          "node_groups[].count",
                          "node_groups[].first",
                          "node_groups[].devices",
                          "node_groups[].parts[].name",
                          "node_groups[].parts[].kind",
                          "node_groups[].parts[].count",
                          "node_groups[].parts[].links[].to",
                          "fabric[].links[].type",
                          "fabric[].links[].count",
                          "link_types[].rate.value",
                          "link_types[].latency.value",
                          "link_types[].duplex",
                          "link_types[].provenance",
                          "link_types[].source",
                          "changes[].link",
                          "changes[].at.value",
                          "changes[].share"})
    test::check_has(json, key);
  CHECK(json["cluster"]["devices"] == 16);
  CHECK(json["node_groups"].size() == 1);
  CHECK(json["node_groups"][0]["devices"].size() == 8);
  for (const Json& type : json["link_types"])
    if (type["name"] == "tcp_10g") {
      CHECK(type["rate"]["value"].get<double>() == Approx(1.15e9));
      CHECK(type["latency"]["value"].get<double>() == Approx(20e-6));  // half of 40 us
      CHECK(type["count"] == 2);
    }
}

TEST_CASE("every example is drawn as sound XML") {
  const std::filesystem::path folder = test::source_file("examples/clusters");
  std::size_t drawn = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path svg = test::scratch_folder() / "a.svg";
    const Ran ran =
        test::rehearse({"inspect", "--cluster", entry.path().string(), "--svg", svg.string()});
    INFO(entry.path() << ran.errors);
    REQUIRE(ran.code == 0);
    const std::string text = test::text_of(svg);
    CHECK(xml_problem(text).empty());
    CHECK(text.find("<svg xmlns=") == 0);
    CHECK(text.find("</svg>\n") == text.size() - 7);
    ++drawn;
  }
  CHECK(drawn >= 4);
}

TEST_CASE("names are escaped, and bytes that are not UTF-8 are replaced") {
  const std::filesystem::path file = test::write_scratch(
      "odd.yaml",
      "cluster:\n"
      "  vertices:\n"
      "    - {name: '<a&\"b>', kind: device, node: '&\xff', device: 'x<y'}\n"
      "    - {name: \"c\\e[31m\", kind: device, node: n, device: t4}\n"
      "  link_types: [{name: '</svg>', rate: 1 GB/s, latency: 1 us, source: '<&>'}]\n"
      "  links: [{a: '<a&\"b>', b: \"c\\e[31m\", type: '</svg>'}]\n");
  const std::filesystem::path svg = test::scratch_folder() / "a.svg";
  const Ran ran = test::rehearse({"inspect", "--cluster", file.string(), "--svg", svg.string()});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(xml_problem(test::text_of(svg)).empty());
  CHECK(test::text_of(svg).find("&lt;/svg&gt;") != std::string::npos);
}

TEST_CASE("many identical nodes are folded in the drawing") {
  const std::filesystem::path file = test::write_scratch(
      "many.yaml",
      "cluster: {device: h100_sxm5_80, devices_per_node: 8, nodes: 512, inter_node: rails}\n");
  const std::filesystem::path svg = test::scratch_folder() / "a.svg";
  const Ran ran = test::rehearse({"inspect", "--cluster", file.string(), "--svg", svg.string()});
  REQUIRE(ran.code == 0);
  const std::string text = test::text_of(svg);
  CHECK(text.size() < 200'000);
  CHECK(text.find("node3 … 512 identical") != std::string::npos);
  CHECK(xml_problem(text).empty());
}

TEST_CASE("wrong cluster files give one line per mistake and nothing else") {
  const std::filesystem::path file =
      test::write_scratch("bad.yaml", "cluster: {device: h100_sxm5_80, nodes: 2 racks}\n");
  const std::filesystem::path svg = test::scratch_folder() / "a.svg";
  test::check_failed(test::rehearse({"inspect", "--cluster", file.string(), "--svg", svg.string()}),
                     1, file.string() + ":1:40: cluster.nodes: '2 racks' is not a number");
  CHECK_FALSE(std::filesystem::exists(svg));
  test::check_failed(test::rehearse({"inspect", "--cluster", "no_such.yaml"}), 1,
                     "no_such.yaml: cannot be read");
  test::check_failed(test::rehearse({"inspect", "--cluster", kDgx, "--svg", "/no/such/a.svg"}), 1,
                     "/no/such/a.svg");
}

TEST_CASE("recordings and clusters exclude each other") {
  test::check_failed(test::rehearse({"inspect", test::kExample, "--cluster", kDgx}), 2,
                     "INPUT and --cluster exclude each other");
  test::check_failed(test::rehearse({"inspect"}), 2, "INPUT or --cluster");
  test::check_failed(test::rehearse({"inspect", test::kExample, "--svg", "a.svg"}), 2,
                     "--svg needs --cluster FILE");
  test::check_failed(test::rehearse({"inspect", "--cluster", kDgx, "--top", "3"}), 2,
                     "--top, --ranks and --workload need a recording");
}

}  // namespace
}  // namespace rehearse
