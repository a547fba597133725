#include <array>

#include <catch2/catch.hpp>

#include "sim/base/text.h"

namespace rehearse {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"latency", "rate", "hidden"};

TEST_CASE("a prefix of other names does not match a shorter name") {
  const std::vector<std::string_view> gpus = {"a10", "a100_sxm4_40", "a100_sxm4_80"};
  CHECK_FALSE(nearest("a100", gpus));
  CHECK(suggest("a100", gpus) == "one of a100_sxm4_40, a100_sxm4_80");
  CHECK(nearest("a11", gpus) == "a10");
}

TEST_CASE("the nearest name is at most a third of the word away") {
  CHECK(nearest("latncy", kNames) == "latency");  // one letter
  CHECK(nearest("hiden", kNames) == "hidden");
  CHECK(nearest("rato", kNames) == "rate");
  CHECK_FALSE(nearest("rtxe", kNames));  // two of four letters
  CHECK_FALSE(nearest("", kNames));
  CHECK_FALSE(nearest("rate", {}));
}

TEST_CASE("a word of a megabyte is near nothing, and costs no time") {
  const std::string word(1 << 20, 'x');
  const std::vector<std::string_view> names(100, "a name");
  CHECK_FALSE(nearest(word, names));
}

TEST_CASE("of equally near names the first is suggested") {
  constexpr std::array<std::string_view, 2> kTwins = {"cat", "car"};
  CHECK(nearest("cax", kTwins) == "cat");
}

TEST_CASE("of equally near names the one with the typed number is suggested") {
  constexpr std::array<std::string_view, 2> models = {"llama3_70b", "llama3.1_405b"};
  CHECK(nearest("llama3_405b", models) == "llama3.1_405b");
  CHECK(nearest("llama3_71b", models) == "llama3_70b");
}

TEST_CASE("without a near name all are listed") {
  CHECK(suggest("rat", kNames) == "did you mean 'rate'?");
  CHECK(suggest("bandwidth", kNames) == "one of latency, rate, hidden");
}

TEST_CASE("a name is found without regard to case, separators, its owner and a final GB") {
  const std::vector<std::string_view> names = {
      "h100_sxm5_80", "h100_sxm5_96", "gpt3_1.3b", "gpt3_13b", "llama3.1_70b", "b200", "gb200"};
  CHECK(spelled_alike("h100_sxm5_80", names) == "h100_sxm5_80");
  CHECK(spelled_alike("H100-SXM5-80GB", names) == "h100_sxm5_80");
  CHECK(spelled_alike("H100 sxm5 80", names) == "h100_sxm5_80");
  CHECK(spelled_alike("meta-llama/Llama-3.1-70B", names) == "llama3.1_70b");
  CHECK(spelled_alike("GPT3-1.3B", names) == "gpt3_1.3b");  // a point is no separator
  CHECK(spelled_alike("GB200", names) == "gb200");
  CHECK_FALSE(spelled_alike("h100", names));
  CHECK_FALSE(spelled_alike("", names));
  CHECK_FALSE(spelled_alike("_", names));
  constexpr std::array<std::string_view, 2> kAlike = {"a_b", "ab"};
  CHECK(spelled_alike("ab", kAlike) == "ab");
  CHECK_FALSE(spelled_alike("AB", kAlike));  // two names
  CHECK(suggest("LATENCI", kNames) == "did you mean 'latency'?");
}

TEST_CASE("of many names those with the most words of the given one are suggested") {
  const std::vector<std::string_view> names = {"h100_pcie_80", "h100_sxm5_80",    "h100_sxm5_96",
                                               "a100_sxm4_40", "qwen3_235b_a22b", "qwen3_32b"};
  const auto suggested = [&](std::string_view word) { return suggest_name(word, names, "gpus"); };
  CHECK(suggested("H100") == "one of h100_pcie_80, h100_sxm5_80, h100_sxm5_96");
  CHECK(suggested("NVIDIA H100 80GB HBM3") == "one of h100_pcie_80, h100_sxm5_80");
  CHECK(suggested("Qwen3-235B") == "did you mean 'qwen3_235b_a22b'?");  // not the nearer qwen3_32b
  CHECK(suggested("h100_smx5_80") == "did you mean 'h100_sxm5_80'?");
  CHECK(suggested("quantum") == "'rehearse catalog gpus' lists them");
  CHECK(suggested("") == "'rehearse catalog gpus' lists them");
}

TEST_CASE("a star matches any run of characters") {
  CHECK(matches_wildcard("*gemm*", "ampere_gemm_128x128"));
  CHECK(matches_wildcard("gemm", "gemm"));
  CHECK(matches_wildcard("a*b*c", "a_b_bc"));
  CHECK(matches_wildcard("*", ""));
  CHECK(matches_wildcard("a**", "a"));
  CHECK_FALSE(matches_wildcard("gemm", "gemm2"));
  CHECK_FALSE(matches_wildcard("a*b", "a_bc"));
  CHECK_FALSE(matches_wildcard("", "a"));
  CHECK_FALSE(matches_wildcard("g?mm", "gemm"));  // only stars are special
}

TEST_CASE("a pattern that backtracks at every star ends soon") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(matches_wildcard(pattern + "b", std::string(5000, 'a')));
}

TEST_CASE("significant digits round up to the next power of ten where they must") {
  CHECK(significant(0.00123456) == "0.00123");
  CHECK(significant(12.3456) == "12.3");
  CHECK(significant(1234.56) == "1235");
  CHECK(significant(9.9996) == "10.0");
  CHECK(significant(-0.5, 2) == "-0.50");
  CHECK(significant(0) == "0");
}

TEST_CASE("percentages have a sign and three digits") {
  CHECK(signed_percent(0.01234) == "+1.23 %");
  CHECK(signed_percent(-0.25) == "-25.0 %");
  CHECK(signed_percent(1.5) == "+150 %");
  CHECK(signed_percent(-1e-16) == "0.00 %");
}

TEST_CASE("digits are grouped by three") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(1234567) == "1,234,567");
}

TEST_CASE("splitting keeps empty parts") {
  CHECK(split("a,,b,", ',') == std::vector<std::string_view>{"a", "", "b", ""});
  CHECK(split("", ',') == std::vector<std::string_view>{""});
  CHECK(trim(" \t a b \r\n") == "a b");
  CHECK(trim(" \n ").empty());
  CHECK(join(std::vector<std::string_view>{"a", "b"}, ", ") == "a, b");
}

}  // namespace
}  // namespace rehearse
