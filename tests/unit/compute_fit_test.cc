// Fits give back the constants that made their rows, whatever a few strays say; calibrations
// survive their file.
#include <cmath>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/compute/calibration.h"
#include "tests/validation/studies/fit.h"
#include "tests/validation/studies/search.h"

namespace rehearse::compute {
namespace {

using workload::Op;
using workload::OpKind;

DeviceFacts device(const char* name) { return facts_of(**cluster::find_gpu(name)); }

MatrixConstants truth() {
  MatrixConstants c;
  c.shape = {.tiles = {{{256, 128, 1.0, 4e-6}, {128, 64, 0.7, 3e-6}, {64, 64, 0.5, 2e-6}}},
             .count = 3,
             .cap = 1,
             .memory = 0.7,
             .launch = 2e-6,
             .smooth = 5};
  c.factor = 0.8;
  return c;
}

std::vector<MeasuredOp> rows_by(const DeviceFacts& facts, const MatrixConstants& c) {
  Constants constants;
  constants.matrix[static_cast<std::size_t>(Arithmetic::kHalf)] = c;
  std::vector<MeasuredOp> rows;
  for (const double m : {64.0, 256.0, 1024.0, 4096.0})
    for (const double n : {512.0, 2048.0, 8192.0})
      for (const double k : {256.0, 1024.0, 8192.0}) {
        const Op op{.name = "", .kind = OpKind::kGemm, .m = m, .n = n, .k = k};
        rows.push_back({op, Seconds::s(predict(facts, constants, op).seconds)});
      }
  return rows;
}

TEST_CASE("a search finds a minimum, and stays inside its bounds") {
  const auto found = minimize({{1, 0.1, 10}, {1, 0.1, 2}}, [](const std::vector<double>& x) {
    return std::abs(std::log(x[0] / 3)) + std::abs(std::log(x[1] / 5));
  });
  CHECK(found[0] == Approx(3).epsilon(0.01));
  CHECK(found[1] == 2);
}

TEST_CASE("the factor of a device is recovered, with and without outliers") {
  const DeviceFacts facts = device("a100_sxm4_80");
  DeviceRows measured{facts, rows_by(facts, truth())};
  measured.rows[3].time = measured.rows[3].time * 5;
  measured.rows[17].time = measured.rows[17].time * 4;
  MatrixConstants start = truth();
  start.factor = 0.5;
  const MatrixConstants found = fit_factor(Arithmetic::kHalf, measured, start, {});
  CHECK(found.factor == Approx(0.8).epsilon(0.01));
  CHECK(found.provenance == Provenance::kInterpolated);
  CHECK(found.from == Approx(2.0 * 64 * 512 * 256));
  CHECK(found.to == Approx(2.0 * 4096 * 8192 * 8192));
}

TEST_CASE("a shape fitted to two devices predicts their rows, with a factor for each") {
  std::vector<DeviceRows> devices;
  for (const auto& [name, factor] : {std::pair{"a100_sxm4_80", 0.9}, {"h100_sxm5_80", 0.6}}) {
    MatrixConstants c = truth();
    c.factor = factor;
    devices.push_back({device(name), rows_by(device(name), c)});
  }
  MatrixConstants start = truth();
  start.factor = 0.75;
  start.shape.memory = 0.5;
  start.shape.tiles[1].share = 0.6;
  const MatrixFit fit = fit_matrix(Arithmetic::kHalf, devices, start, {});
  CHECK(fit.residual < 0.02);
  CHECK(fit.devices[0].factor / fit.devices[1].factor == Approx(1.5).epsilon(0.05));
}

TEST_CASE("a benchmark reads what L2 holds of its weights from there") {
  // 6 weights of 8 MiB and little else stay in the 96 MB of L40S; of 64 MiB, none does.
  const DeviceFacts facts = device("l40s");
  Constants constants;
  constants.matrix[static_cast<std::size_t>(Arithmetic::kHalf)] = truth();
  const Timing cached = {.copies = 6, .cache = 20};
  const auto gain = [&](double n, const Timing& timing) {
    const Op op{.name = "", .kind = OpKind::kGemm, .m = 1, .n = n, .k = 4096};
    return predict(facts, constants, op).seconds / predict(facts, constants, op, timing).seconds;
  };
  CHECK(gain(1024, cached) > 1.5);
  CHECK(gain(8192, cached) == 1);
  CHECK(gain(1024, {.copies = 60, .cache = 20}) == 1);
}

TEST_CASE("shares of memory are recovered from rows of each kind") {
  const DeviceFacts facts = device("v100_pcie_32");
  Constants constants;
  constants.memory = {.elementwise = 0.9, .norm = 0.95, .softmax = 0.9, .norm_cache = 0.8};
  DeviceRows measured{facts, {}};
  for (const OpKind kind : {OpKind::kElementwise, OpKind::kNorm, OpKind::kSoftmax})
    for (const double width : {512.0, 1024.0, 1536.0, 2048.0, 6144.0, 16384.0})
      for (const double rows : {4096.0, 65536.0}) {
        const Op op{.name = "",
                    .kind = kind,
                    .dtype = workload::Dtype::kFp32,
                    .bytes = Bytes::b(8 * rows * width),
                    .width = width};
        measured.rows.push_back({op, Seconds::s(predict(facts, constants, op).seconds + 7e-6)});
      }
  const MemoryFit fit = fit_memory(measured, {});
  CHECK(fit.residual < 0.02);
  CHECK(fit.constants.elementwise == Approx(0.9).epsilon(0.02));
  CHECK(fit.elementwise_overhead == Approx(7e-6).epsilon(0.3));
}

TEST_CASE(
    "attention's benchmark reads keys from the cache that it fits in, and a copy costs its bytes") {
  const DeviceFacts facts = device("h100_sxm5_80");
  Constants constants;
  constants.memory.call = 0;
  constants.attention.overlap = 1;  // times add up
  const Timing cached{.copies = 1, .cache = 30};
  const auto decode = [](double keys) {
    return Op{.name = "", .kind = OpKind::kAttention, .batch = 8, .m = 1, .n = keys, .k = 128};
  };
  // The law's constants are 1 and 0, and memory is read at its peak, or at 30 bytes a clock.
  const double bytes = 8 * 128 * 2 * (2 + 2 * 1024.0), rate = facts.memory_rate.bytes_per_s();
  const double saved = predict(facts, constants, decode(1024)).seconds -
                       predict(facts, constants, decode(1024), cached).seconds;
  CHECK(saved == Approx(bytes / rate - bytes / (30 * 132 * 1.98e9)));
  // 8.6 GB are not in L2.
  CHECK(predict(facts, constants, decode(2 << 20), cached).seconds ==
        Approx(predict(facts, constants, decode(2 << 20)).seconds));
  Op copied = decode(1024);
  copied.bytes = Bytes::b(1e9);
  CHECK(predict(facts, constants, copied).seconds -
            predict(facts, constants, decode(1024)).seconds ==
        Approx(1e9 / rate));
}

TEST_CASE("constants of attention are recovered from two devices and two families") {
  Constants truth;
  truth.attention = {.share = 0.8,
                     .exponentials = 1.2,
                     .fixed = 5000,
                     .memory = 0.9,
                     .overlap = 2,
                     .families = {{{1, 9e-6, 0.3}, {0.7, 14e-6, 0.9}, {}}}};
  const Timing timing{.copies = 1, .cache = 15};
  std::vector<AttentionRows> tables;
  for (const auto& [name, kernels] : {std::pair("a100_sxm4_80", AttentionKernels::kFlashAttention2),
                                      std::pair("h100_sxm5_80", AttentionKernels::kTensorRt)}) {
    AttentionRows table{.facts = device(name), .constants = truth, .rows = {}};
    table.constants.attention_kernels = kernels;
    for (const double heads : {8.0, 64.0, 512.0})
      for (const double tokens : {128.0, 512.0, 2048.0, 8192.0})
        for (const double size : {64.0, 128.0}) {
          const Op op{.name = "",
                      .kind = OpKind::kAttention,
                      .batch = heads,
                      .m = tokens,
                      .n = tokens,
                      .k = size,
                      .causal = true};
          const Predicted p = predict(table.facts, table.constants, op, timing);
          CHECK(p.kind == OpClass::kNamedAttention);
          table.rows.push_back({op, Seconds::s(p.seconds)});
        }
    tables.push_back(table);
  }
  const AttentionFit fit = fit_attention(tables);
  CHECK(fit.residual < 0.02);
  CHECK(fit.constants.families[0].factor == 1);
  CHECK(fit.constants.families[1].factor == Approx(0.7).epsilon(0.1));
  CHECK(fit.constants.families[1].start == Approx(14e-6).epsilon(0.1));
}

TEST_CASE("a calibration is read") {
  const auto family = [](std::string_view name, int start) {
    return fmt::format(
        "  {}: {{factor: 0.8, start: {} us, tail: 0.4, block: 3 us, key: 0 ns, merge: 2 us, "
        "part: 0.1 us}}\n",
        name, start);
  };
  const Result<Calibration> read = parse_calibration(
      "operations: 1\ndevice: a100_sxm4_80\nmatrix:\n  - arithmetic: half\n    factor: 0.9\n"
      "    reread_from: 20000\n    reread_extra: 1.5\n    cap: 0.95\n    memory: 0.8\n"
      "    launch: 4 us\n    smooth: 6\n    clock_mhz: 1700\n    step: 1.5 ns\n    cut: 2 us\n"
      "    tiles:\n"
      "      - {rows: 128, columns: 256, share: 0.9, fixed: 2 us}\n"
      "      - {rows: 64, columns: 64, share: 0.7, fixed: 1 us}\n"
      "    source: table\n    rows_used: all\n    date: 2026-08\n    rows: 36\n"
      "    residual: 0.05\n    from_gflop: 0.001\n    to_gflop: 10000\n"
      "memory:\n  elementwise: 0.87\n  call: 2 us\n  source: table\n  rows_used: all\n"
      "  date: 2026-08\n  rows: 12\n  residual: 0.02\n"
      "attention:\n  share: 0.9\n  exponentials: 1.5\n  fixed_clocks: 4000\n"
      "  memory: 0.95\n  overlap: 2\n" +
          family("flash_attention_2", 11) + family("tensorrt", 16) + family("asynchronous", 9) +
          family("asynchronous_blackwell", 5) +
          "  source: table\n  rows_used: all\n  date: 2026-08\n  rows: 12\n  residual: 0.1\n"
          "widths:\n  gemm: {low: 0.9, high: 1.2}\n",
      "made.yaml");
  REQUIRE(read);
  const MatrixCalibration* half = read->find(Arithmetic::kHalf);
  REQUIRE(half);
  CHECK(half->constants.reread.extra == 1.5);
  REQUIRE(read->attention);
  CHECK(read->attention->constants.fixed == 4000);
  CHECK(read->attention->constants.families[1].start == Approx(16e-6));
  CHECK(read->attention->constants.blackwell.start == Approx(5e-6));
  CHECK(read->attention->constants.blackwell.decoding.merge == Approx(2e-6));
  CHECK(half->constants.shape.count == 2);
  CHECK(half->constants.shape.tiles[1].share == 0.7);
  CHECK(half->constants.shape.tiles[1].fixed == Approx(1e-6));
  CHECK(half->constants.shape.clock == Approx(1.7e9));
  CHECK(half->constants.shape.step == Approx(1.5e-9));
  CHECK(half->constants.shape.cut == Approx(2e-6));
  CHECK(half->constants.from == Approx(1e6));
  CHECK(half->constants.to == Approx(1e13));
  CHECK(half->fitted.rows == 36);
  CHECK(read->memory->constants.elementwise == 0.87);
  CHECK(read->widths[0]->high == 1.2);
}

TEST_CASE("an error in a calibration has its place") {
  const auto wrong = parse_calibration(
      "operations: 1\ndevice: x\nmemory:\n  elementwise: 7\n  call: 2 us\n  source: a\n"
      "  rows_used: a\n  date: a\n  rows: 1\n  residual: 0\n  cal: 1\n",
      "made.yaml");
  REQUIRE_FALSE(wrong);
  const std::string text = to_string(wrong.error());
  CHECK(text.find("memory.elementwise: 7 is out of range; a number from 0.1 to 1") !=
        std::string::npos);
  CHECK(text.find("cal: unknown key; did you mean 'call'?") != std::string::npos);
}

TEST_CASE("every shipped calibration is of a device of the catalog and physically possible") {
  for (const Calibration& c : shipped_calibrations()) {
    INFO(c.device);
    if (c.device != kTypical) CHECK(cluster::find_gpu(c.device));
    for (const MatrixCalibration& m : c.matrix) {
      CHECK(m.constants.factor <= 1.03);
      CHECK(m.constants.factor >= 0.2);
      CHECK(m.constants.factor * std::max(1.0, m.constants.shape.cap) <= 1.03);
      CHECK(!m.fitted.source.empty());
    }
    if (c.memory) CHECK(c.memory->constants.elementwise <= 0.97);
  }
}

}  // namespace
}  // namespace rehearse::compute
