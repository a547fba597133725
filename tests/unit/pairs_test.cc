// Two jobs on one GPU: time slicing by hand, what measured pairs add, and Gavel's table.
#include "models/sharing/pairs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <catch2/catch.hpp>

#include "models/sharing/pair_choice.h"
#include "models/sharing/shipped_pairs.h"
#include "tests/support/data.h"
#include "tests/validation/studies/pair_accuracy.h"

namespace rehearse {
namespace {

using sharing::MeasuredPair;
using sharing::PairLaw;
using sharing::Resident;
using sharing::time_slice_share;

Resident resident(const std::string& family, double batch, double step_s) {
  return {family, batch, Seconds::s(step_s)};
}

TEST_CASE("time slicing: equal jobs halve 1.05, longer steps win") {
  const Resident a = resident("a", 8, 0.1), b = resident("b", 8, 0.1);
  CHECK(time_slice_share(a, b) == Approx(0.525));
  // Steps of 1 s and 0.1 s: q is 1 and 0.1^0.15 = 0.7079; 1.05 / 1.7079 = 0.6148.
  const Resident longer = resident("c", 8, 1);
  CHECK(time_slice_share(longer, a) == Approx(0.6148).epsilon(1e-3));
  CHECK(time_slice_share(longer, a) + time_slice_share(a, longer) == Approx(1.05));
  // Of a GPU without measured pairs that is all.
  CHECK(PairLaw().share(longer, a) == Approx(time_slice_share(longer, a)));
  CHECK(PairLaw().coefficients().empty());
}

/// Two families that space-share: the shares of pairs of batches 1 to 16.
std::vector<MeasuredPair> made_up() {
  std::vector<MeasuredPair> pairs;
  for (double x = 1; x <= 16; x *= 2)
    for (double y = 1; y <= 16; y *= 2)
      pairs.push_back({resident("small", x, 0.01 * x), resident("large", y, 0.1 * y),
                       0.9 * std::pow(x, -0.05) * std::pow(y, -0.1), 0.7 * std::pow(x, -0.08)});
  return pairs;
}

TEST_CASE("the law fits pairs of two families, and applies to other batches") {
  const PairLaw law(made_up());
  CHECK(law.residual() < 0.03);
  for (const MeasuredPair& p : made_up()) {
    CHECK(law.share(p.a, p.b) == Approx(p.share_a).epsilon(0.1));
    CHECK(law.share(p.b, p.a) == Approx(p.share_b).epsilon(0.1));
  }
  const Resident small = resident("small", 3, 0.03), large = resident("large", 6, 0.6);
  CHECK(law.share(small, large) ==
        Approx(0.9 * std::pow(3, -0.05) * std::pow(6, -0.1)).epsilon(0.1));
}

TEST_CASE("no share is above 1, and few pairs move few terms") {
  std::vector<MeasuredPair> pairs = made_up();
  for (MeasuredPair& p : pairs) p.share_a = p.share_b = 1;
  const PairLaw law(pairs);
  for (const MeasuredPair& p : pairs) {
    CHECK(law.share(p.a, p.b) <= 1);
    CHECK(law.share(p.a, p.b) > 0.9);
  }
  // Two unknown jobs are time-sliced, except for the term that all pairs have in common.
  const PairLaw one(std::vector<MeasuredPair>{pairs.front()});
  const Resident x = resident("x", 4, 1), y = resident("y", 4, 1);
  CHECK(one.share(x, y) >= time_slice_share(x, y));
}

TEST_CASE("the same pairs in another order give the same law") {
  std::vector<MeasuredPair> pairs = made_up(), back(pairs.rbegin(), pairs.rend());
  for (MeasuredPair& p : back) {
    std::swap(p.a, p.b);
    std::swap(p.share_a, p.share_b);
  }
  const PairLaw law(pairs), other(back);
  for (const MeasuredPair& p : pairs)
    CHECK(law.share(p.a, p.b) == Approx(other.share(p.a, p.b)).epsilon(1e-6));
}

TEST_CASE("predictions above the limit of a table are not errors") {
  // One job keeps all of its speed with any other; small batches would say more than all.
  std::vector<MeasuredPair> pairs = made_up();
  for (MeasuredPair& p : pairs) p.share_a = std::min(1.0, 1.6 * std::pow(p.b.batch, -0.25));
  const PairLaw law(pairs);
  for (const MeasuredPair& p : pairs) {
    INFO(p.b.batch);
    CHECK(law.share(p.a, p.b) == Approx(p.share_a).epsilon(0.06));
  }
}

TEST_CASE("an initial law: pairs change their own terms only") {
  const auto known = std::make_shared<PairLaw>(made_up());
  const Resident small = resident("small", 4, 0.04), large = resident("large", 4, 0.4),
                 mine = resident("mine", 4, 0.1);
  CHECK(PairLaw({}, known).share(small, large) == Approx(known->share(small, large)));
  const std::vector<MeasuredPair> one = {{mine, large, 0.2, 0.9}};
  const PairLaw law(one, known);
  CHECK(law.share(mine, large) < known->share(mine, large));
  CHECK(law.share(mine, large) < PairLaw().share(mine, large));
  CHECK(law.share(small, large) == Approx(known->share(small, large)).epsilon(0.35));
  CHECK(law.knows("mine"));
  CHECK(law.knows("small"));
  CHECK_FALSE(law.knows("stranger"));
}

TEST_CASE("batches beyond the measured ones count as the largest one") {
  const PairLaw law(made_up());
  const Resident large = resident("large", 4, 0.4);
  // Same step, so that time slicing is alike.
  CHECK(law.share(resident("small", 512, 1), large) ==
        Approx(law.share(resident("small", 64, 1), large)));
  CHECK(law.share(resident("small", 512, 1), large) ==
        Approx(law.share(resident("small", 16, 1), large)));
  CHECK(law.share(large, resident("small", 0.5, 1)) ==
        Approx(law.share(large, resident("small", 1, 1))));
}

TEST_CASE("pairs to measure: those unlike the known ones") {
  const Resident a1 = resident("a", 1, 0.1), a2 = resident("a", 2, 0.1), b = resident("b", 1, 0.1),
                 c = resident("c", 1, 0.1);
  const std::vector<sharing::JobPair> pairs = {{a1, a2}, {a1, b}, {a2, b}, {b, c}};
  // a1 with b was measured: a2 with b is the last pair to measure.
  const std::vector<sharing::JobPair> known = {{a1, b}};
  const std::vector<sharing::JobPair> rest = {{a1, a2}, {a2, b}, {b, c}};
  const auto order = sharing::pairs_to_measure(rest, 3, known);
  REQUIRE(order.size() == 3);
  CHECK(order.back() == 1);
  // No more than there are, each once, and the same ones again.
  const auto all = sharing::pairs_to_measure(pairs, 99);
  CHECK(std::set<std::size_t>(all.begin(), all.end()).size() == pairs.size());
  CHECK(all == sharing::pairs_to_measure(pairs, 99));
  CHECK(sharing::pairs_to_measure({}, 3).empty());
  // The choice of few begins as the choice of many.
  CHECK(sharing::pairs_to_measure(pairs, 2) ==
        std::vector<std::size_t>(all.begin(), all.begin() + 2));
}

TEST_CASE("shipped laws: of K80 and V100") {
  CHECK(sharing::find_shipped_pairs("a100_sxm4_80") == nullptr);
  for (const char* device : {"k80", "v100_sxm2_16", "v100_pcie_32"}) {
    const sharing::ShippedPairs* shipped = sharing::find_shipped_pairs(device);
    REQUIRE(shipped);
    CHECK(shipped->rows > 500);
    CHECK(shipped->left_out > shipped->law->residual());
    CHECK(shipped->law->knows("ResNet-50"));
  }
  // V100 runs kernels of both jobs at once: ResNet-50 slows down every job that shares its GPU,
  // ResNet-18 almost none.
  const auto& v100 = *sharing::find_shipped_pairs("v100_sxm2_16")->law;
  const Resident resnet18 = resident("ResNet-18", 64, 0.042),
                 resnet50 = resident("ResNet-50", 64, 0.228), lm = resident("LM", 40, 0.022);
  CHECK(v100.share(resnet18, lm) > 0.95);
  CHECK(v100.share(lm, resnet50) < 0.55);
}

TEST_CASE("shipped laws: every mistake of a file is reported") {
  const auto error = [](const std::string& text) {
    const auto read = sharing::parse_shipped_pairs(text, "law.yaml");
    REQUIRE_FALSE(read);
    return to_string(read.error());
  };
  using Catch::Contains;
  CHECK_THAT(error("pairs: 2\n"), Contains("version 2") && Contains("device") &&
                                      Contains("fitted") && Contains("families") &&
                                      Contains("terms"));
  CHECK_THAT(error("pairs: 1\ndevice: x\nfamilies: {a: {middle: 9, from: 1, to: 4}}\n"
                   "terms: {\"*\": 99}\n"),
             Contains("out of the range") && Contains("99 is out of range"));
}

TEST_CASE("shipped laws are those of Gavel's table") {
  const auto folder = test::shared_data("gavel-throughputs");
  SKIP_WITHOUT_DATA(folder);
  const auto tables = cli::read_pairs(*folder);
  REQUIRE(tables);
  for (const cli::PairTable& table : *tables) {
    const auto* shipped = sharing::find_shipped_pairs(table.gpu == "k80" ? "k80" : "v100_sxm2_16");
    double sum = 0;
    for (const MeasuredPair& p : table.pairs)
      sum += std::abs(shipped->law->share(p.a, p.b) / p.share_a - 1) +
             std::abs(shipped->law->share(p.b, p.a) / p.share_b - 1);
    CHECK(shipped->rows == 2 * table.pairs.size());
    // As it was fitted, but for digits and small terms.
    CHECK(sum / static_cast<double>(shipped->rows) ==
          Approx(shipped->law->residual()).margin(0.003));
  }
}

TEST_CASE("a table of pairs: mirrored pairs count once, and jobs that did not fit are omitted") {
  const auto folder = test::scratch_folder() / "pairs" / "gavel-throughputs";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::FILE* file = std::fopen((folder / name).c_str(), "w");
    REQUIRE(file);
    std::fputs(text.c_str(), file);
    std::fclose(file);
  };
  write("isolated.csv",
        "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,steps_per_s\n"
        "simulation,v100,yes,A,8,1,4\nsimulation,v100,yes,B,,1,10\nphysical_cluster,v100,yes,A,8,1,"
        "99\n");
  const std::string head =
      "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,other_job,other_batch,"
      "other_num_gpus,steps_per_s,other_steps_per_s\n";
  write("colocated.csv", head +
                             "simulation,v100,yes,A,8,1,B,,1,2,8\n"
                             "simulation,v100,yes,B,,1,A,8,1,8,2\n"
                             "simulation,v100,no,A,8,1,B,,1,2,8\n"
                             "simulation,v100,yes,A,8,2,B,,2,0,0\n"
                             "simulation,v100,yes,A,8,1,A,8,1,0,0\n");
  const auto tables = cli::read_pairs(folder);
  INFO((tables ? "" : to_string(tables.error())));
  REQUIRE(tables);
  REQUIRE(tables->size() == 1);
  REQUIRE(tables->front().pairs.size() == 1);
  CHECK(tables->front().left_out == 1);
  CHECK(tables->front().pairs[0].share_a == Approx(0.5));
  CHECK(tables->front().pairs[0].share_b == Approx(0.8));
  CHECK(tables->front().pairs[0].b.batch == 1);
  // Too few to say anything of; a folder without the tables has no case.
  CHECK(cli::measure_pair_accuracy(folder.parent_path())->cases.empty());
  CHECK(cli::measure_pair_accuracy(test::scratch_folder() / "nowhere")->cases.empty());
  write("colocated.csv", "file,gpu\n");
  CHECK_FALSE(cli::read_pairs(folder));
}

}  // namespace
}  // namespace rehearse
