// rehearse bench-gpu, with mock libraries instead of NVIDIA's: what it measures is what their
// law says, and what goes wrong is said.
#include <csignal>
#include <filesystem>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "tests/gpu_mocks/law.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Ran;

const fs::path kMocks = fs::path(REHEARSE_GPU_MOCKS) / "all";

using Variables = std::map<std::string, std::string>;

Ran bench_gpu(std::vector<std::string> arguments, Variables variables = {},
              const std::string& libraries = kMocks.string()) {
  arguments.insert(arguments.begin(), "bench-gpu");
  variables.emplace("LD_LIBRARY_PATH", libraries);
  return test::RunningRehearse(std::move(arguments), std::move(variables)).wait();
}

json rows_of(const Ran& ran) {
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  return json::parse(ran.out).at("rows");
}

json measure(const std::string& shapes, Variables variables = {}) {
  const fs::path file = test::write_scratch("shapes.yaml", "shapes:\n" + shapes);
  return rows_of(bench_gpu({"--shapes", file.string(), "--format", "json"}, std::move(variables)));
}

/// The mean lies within its own 95 % interval, and what chance adds in one of twenty cases, of the
/// time that the law gives.
void check_time(const json& row, double seconds) {
  const double mean = row.at("mean").at("value").get<double>();
  INFO(row.dump());
  INFO("the law says " << seconds);
  CHECK(std::abs(mean / seconds - 1) < 2 * std::max(row.at("half_width").get<double>(), 0.003));
  CHECK(row.at("half_width").get<double>() <= 0.01);
  CHECK(row.at("min").at("value") <= row.at("p10").at("value"));
  CHECK(row.at("p10").at("value") <= row.at("median").at("value"));
  CHECK(row.at("median").at("value") <= row.at("p90").at("value"));
}

bool held(const json& row) { return row.at("state") == "hot"; }

TEST_CASE("products are measured hot and cold, in every format and layout") {
  const json rows = measure(
      "  - {op: gemm, m: 256, n: 1024, k: 512, dtype: [bf16, fp16, tf32, fp32],"
      " layout: [nt, nn, tn, tt]}\n"
      "  - {op: gemm, m: 256, n: 1024, k: 512, dtype: fp8}\n"
      "  - {op: gemm, m: 64, n: 64, k: 128, batch: 48, epilogue: [none, bias, gelu_bias]}\n");
  CHECK(rows.size() == 2 * (16 + 1 + 3));
  for (const json& row : rows) {
    const std::string dtype = row.at("dtype");
    const double element = dtype == "fp32" ? 4 : dtype == "fp8" ? 1 : 2;
    const bool batched = row.at("shape").get<std::string>().find("batch=48") != std::string::npos;
    check_time(row, batched ? mock::gemm(64, 64, 128, 48, element, held(row))
                            : mock::gemm(256, 1024, 512, 1, element, held(row)));
    CHECK(row.at("device") == "NVIDIA H100 80GB HBM3");
    CHECK(row.at("multiprocessors") == 132);
    CHECK(row.at("libraries") == "driver 13.0, cuBLASLt 13.0.2");
    CHECK(row.at("memory_clock").at("value") == 2619e6);
    CHECK(row.at("sm_clock").at("value") == 1755e6);
  }
}

TEST_CASE("convolutions and attention are measured") {
  const json rows = measure(
      "  - {op: conv, images: 8, channels: 64, height: 28, width: 28, filters: 128,\n"
      "     filter_height: 3, filter_width: 3, padding: 1, stride: 2}\n"
      "  - {op: conv_input, images: 8, channels: 64, height: 28, width: 28, filters: 128,\n"
      "     filter_height: 3, filter_width: 3, padding: 1, stride: 2, layout: nchw}\n"
      "  - {op: conv_weight, images: 8, channels: 64, height: 28, width: 28, filters: 128,\n"
      "     filter_height: 3, filter_width: 3, padding: 1, stride: 2, dtype: fp16}\n"
      "  - {op: attention, batch: 2, heads: 16, queries: 512, keys: 1024, head_size: 64,\n"
      "     layout: [causal, full]}\n");
  CHECK(rows.size() == 2 * 5);
  for (const json& row : rows) {
    if (row.at("op") == "attention") {
      check_time(row, mock::attention(32, 512, 1024, 64, 2, held(row)));
      continue;
    }
    const double positions = 8 * 14 * 14;
    check_time(row,
               mock::kernel(2 * positions * 128 * 64 * 9, mock::rate_of(2),
                            2 * (8 * 64 * 28 * 28 + 128 * 64 * 9 + positions * 128), held(row)));
    CHECK(row.at("libraries") == "driver 13.0, cuDNN 9.19.0");
  }
}

TEST_CASE("our own kernels, copies and sets are measured") {
  const json rows = measure(
      "  - {op: elementwise, elements: [1000000, 100000000], inputs: [1, 2], dtype: [bf16, fp32]}\n"
      "  - {op: softmax, rows: 4096, width: 1024}\n"
      "  - {op: norm, rows: 4096, width: 1024}\n"
      "  - {op: reduction, rows: 4096, width: 1024, dtype: fp32}\n"
      "  - {op: copy, bytes: 8000000, layout: [h2d_pinned, d2h_pinned, h2d_pageable,\n"
      "     d2h_pageable, d2d, peer]}\n"
      "  - {op: set, bytes: 8000000}\n");
  CHECK(rows.size() == 2 * (8 + 3) + 4 + 2 + 1 + 2);
  const auto moved = [](double bytes, const json& row) {
    return mock::kernel(0, 1, bytes, held(row));
  };
  for (const json& row : rows) {
    const std::string op = row.at("op"), layout = row.at("layout"), shape = row.at("shape");
    const double element = row.at("dtype") == "fp32" ? 4 : 2;
    if (op == "elementwise")
      check_time(row, moved((shape.find("=100000000 ") != std::string::npos ? 1e8 : 1e6) *
                                (shape.ends_with("2") ? 3 : 2) * element,
                            row));
    else if (op == "softmax" || op == "norm")
      check_time(row, moved(2 * 4096 * 1024 * 2, row));
    else if (op == "reduction")
      check_time(row, moved(4 * 4096 * 1025, row));
    else if (op == "set")
      check_time(row, moved(8e6, row));
    else if (layout == "d2d")
      check_time(row, moved(16e6, row));
    else
      check_time(row, mock::copy(8e6, layout == "peer"             ? mock::kPeerRate
                                      : layout.ends_with("pinned") ? mock::kHostRate
                                                                   : mock::kPageableRate));
  }
}

TEST_CASE("collectives run over the visible GPUs, over one GPU they are a lower bound") {
  const std::string shapes =
      "  - {op: all_reduce, bytes: 4000000}\n"
      "  - {op: all_gather, bytes: 4000000}\n"
      "  - {op: reduce_scatter, bytes: 4000000, dtype: fp32}\n"
      "  - {op: broadcast, bytes: 4000000}\n"
      "  - {op: all_to_all, bytes: 4000000, ranks: 2}\n";
  const json rows = measure(shapes, {{"MOCK_DEVICES", "4"}});
  CHECK(rows.size() == 5);
  for (const json& row : rows) {
    const double ranks = row.at("op") == "all_to_all" ? 2 : 4;
    check_time(row, mock::ring(4e6, ranks, (row.at("op") == "all_reduce" ? 2 : 1) * (ranks - 1)));
    CHECK(row.at("shape") == fmt::format("bytes=4000000 ranks={}", ranks));
    CHECK(row.at("note") == "");
    CHECK(row.at("libraries") == "driver 13.0, NCCL 2.28.9");
  }
  const fs::path file = test::write_scratch("shapes.yaml", "shapes:\n" + shapes);
  const Ran one =
      bench_gpu({"--shapes", file.string(), "--format", "json"}, {{"MOCK_DEVICES", "1"}});
  const json alone = rows_of(one);
  CHECK(alone.size() == 4);
  for (const json& row : alone) CHECK(row.at("note") == "one GPU: nothing is sent, a lower bound");
  CHECK(one.errors.find("1 visible, 2 ranks wanted; one GPU per rank") != std::string::npos);
}

TEST_CASE("the usual shapes of every operation are measured, in every format of output") {
  const fs::path store = test::scratch_folder() / "costs.rehearse";
  const Ran ran = bench_gpu({"-o", store.string(), "--format", "csv"});
  INFO(ran.errors);
  REQUIRE(ran.code == 0);
  CHECK(ran.errors.find("shapes on NVIDIA H100 80GB HBM3, 132 multiprocessors: about ") !=
        std::string::npos);
  CHECK(ran.errors.find("skipped") == std::string::npos);
  for (const char* op : {"gemm", "conv", "conv_input", "conv_weight", "attention", "elementwise",
                         "norm", "softmax", "reduction", "copy", "set", "all_reduce"})
    CHECK(ran.out.find(fmt::format("\n{},", op)) != std::string::npos);
  const auto lines = std::count(ran.out.begin(), ran.out.end(), '\n') - 1;
  CHECK(lines > 250);
  // The store has them all; measuring again replaces what is of the same thing.
  const fs::path file = test::write_scratch("one.csv", "op,rows,width\nnorm,8192,4096\n");
  REQUIRE(bench_gpu({"--shapes", file.string(), "-o", store.string()}).code == 0);
  const Ran shown = test::rehearse({"inspect", store.string(), "--format", "json"});
  INFO(shown.errors);
  REQUIRE(shown.code == 0);
  CHECK(json::parse(shown.out).at("op_costs").size() == static_cast<std::size_t>(lines));
}

TEST_CASE("without a driver or a device, the command ends at once and names the requirement") {
  const std::string empty = test::scratch_folder().string();
  const Ran none = bench_gpu({"--ops", "gemm"}, {}, empty);
  if (none.code != 0)  // a machine without a GPU
    test::check_failed(none, 1, "no NVIDIA driver: libcuda.so.1 is not found; a machine with");
  test::check_failed(
      bench_gpu({}, {{"MOCK_DEVICES", "0"}}), 1,
      "the NVIDIA driver sees no GPU; a machine with an NVIDIA GPU and its driver; "
      "run rehearse doctor to see what is missing; CUDA_VISIBLE_DEVICES may hide it");
  test::check_failed(bench_gpu({}, {{"MOCK_INIT", "100"}}), 1, "sees no GPU");
  test::check_failed(bench_gpu({}, {{"MOCK_INIT", "999"}}), 1,
                     "the NVIDIA driver does not start: CUDA_ERROR_UNKNOWN (999); a machine");
}

/// The mocks, but for some of them.
std::string mocks_without(const std::set<std::string>& names) {
  const fs::path folder = test::scratch_folder();
  for (const auto& entry : fs::directory_iterator(kMocks))
    if (!names.contains(entry.path().filename().string()))
      fs::create_symlink(entry.path(), folder / entry.path().filename());
  return folder.string();
}

TEST_CASE("a missing library skips its operations, and the message says how to install it") {
  const fs::path file = test::write_scratch(
      "shapes.csv", "op,rows,width,bytes,elements\nnorm,64,64,,\nset,,,4096,\n");
  // Of the same soname as NVIDIA's own, which may be installed here: an empty file precedes
  // it.
  const std::string folder = mocks_without({"libnvrtc.so.13"});
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"})
    fs::copy_file(kMocks / "libnvidia-ml.so.1", fs::path(folder) / name);
  const Ran ran = bench_gpu({"--shapes", file.string(), "--format", "json"}, {}, folder);
  const json rows = rows_of(ran);
  CHECK(rows.size() == 2);
  CHECK(json::parse(ran.out).at("left_out").at(0).at("ops") == "elementwise");
  CHECK(ran.errors.find("--ops elementwise left out (1 shape): libnvrtc.so.13 lacks nvrtcVersion: "
                        "it is too old, or another library of that name; install the CUDA "
                        "toolkit") != std::string::npos);
  const Ran alone =
      bench_gpu({"--ops", "elementwise", "--shapes", file.string(), "--quiet"}, {}, folder);
  CHECK(alone.code == 1);
  CHECK(alone.errors == "rehearse: nothing could be measured\n");
}

TEST_CASE("the message about an older library names the missing function") {
  const std::string old = (fs::path(REHEARSE_GPU_MOCKS) / "old").string() + ":" + kMocks.string();
  const fs::path file =
      test::write_scratch("shapes.csv", "op,m,n,k,bytes\ngemm,8,8,8,\nset,,,64\n");
  const fs::path good = test::write_scratch("good.csv", "op,m,n,k,bytes\ngemm,8,8,8,\nset,,,,64\n");
  CHECK(bench_gpu({"--shapes", file.string()}, {}, old).code == 1);  // a row is too short
  const Ran ran = bench_gpu({"--shapes", good.string()}, {}, old);
  CHECK(ran.code == 0);
  CHECK(ran.errors.find("libcublasLt.so.13 lacks cublasLtMatmulAlgoGetHeuristic") !=
        std::string::npos);
}

TEST_CASE("without NVML clocks are unknown, and a message says so") {
  const fs::path file = test::write_scratch("shapes.csv", "op,bytes\nset,4096\n");
  const Ran ran = bench_gpu({"--shapes", file.string(), "--format", "json"}, {},
                            mocks_without({"libnvidia-ml.so.1"}));
  CHECK(rows_of(ran).at(0).at("sm_clock").at("value") == 0);
  CHECK(ran.errors.find(
            "no NVML: libnvidia-ml.so.1 is not found: clocks and throttling are unknown") !=
        std::string::npos);
}

TEST_CASE("with little memory there are fewer operands, and shapes that do not fit are skipped") {
  const fs::path file =
      test::write_scratch("shapes.csv",
                          "op,elements,inputs\nelementwise,1000000,1\nelementwise,400000000,1\n"
                          "elementwise,4000000000,1\n");
  // 256 MB flush L2, and one set of the second takes 1.6 GB.
  const Ran ran =
      bench_gpu({"--shapes", file.string(), "--format", "json"}, {{"MOCK_MEMORY", "2000000000"}});
  const json rows = rows_of(ran);
  REQUIRE(rows.size() == 4);
  CHECK(rows.at(0).at("note") == "");
  CHECK(rows.at(2).at("note") == "one set of operands: memory is short");
  check_time(rows.at(2), mock::kernel(0, 1, 1.6e9, false));
  CHECK(ran.errors.find("elementwise elements=4000000000 inputs=1 bf16 skipped: taking 7.45 GiB of "
                        "NVIDIA H100 80GB HBM3: CUDA_ERROR_OUT_OF_MEMORY (2)") !=
        std::string::npos);
}

TEST_CASE("shapes that a library does not support are skipped, with its message") {
  const fs::path file = test::write_scratch(
      "shapes.yaml",
      "shapes:\n"
      "  - {op: gemm, m: 64, n: 64, k: 64, dtype: [fp8, bf16]}\n"
      "  - {op: attention, batch: 1, heads: 1, queries: 64, keys: 64, head_size: 64}\n"
      "  - {op: conv, images: 1, channels: 8, height: 8, width: 8, filters: 8,\n"
      "     filter_height: 1, filter_width: 1, dtype: [fp32, tf32]}\n");
  const Ran ran = bench_gpu({"--shapes", file.string(), "--format", "json"},
                            {{"MOCK_NO_FP8", "1"}, {"MOCK_NO_ATTENTION", "1"}});
  CHECK(rows_of(ran).size() == 2 * 2);
  CHECK(json::parse(ran.out).at("skipped").size() == 3);
  CHECK(ran.errors.find("fp8 skipped: cuBLASLt has no algorithm for it on this device") !=
        std::string::npos);
  CHECK(ran.errors.find(
            "bf16 skipped: cuDNN does not support this graph: CUDNN_STATUS_OF_THE_MOCK") !=
        std::string::npos);
  CHECK(ran.errors.find("fp32 skipped: cuDNN computes fp32 as tf32 here; dtype tf32") !=
        std::string::npos);
}

TEST_CASE(
    "throttled batches are dropped and counted, and batches at the power limit are reported") {
  const std::string shape = "  - {op: norm, rows: 4096, width: 4096}\n";
  std::uint64_t dropped = 0;
  for (const json& row : measure(shape, {{"MOCK_THROTTLE", "5"}})) {
    dropped += row.at("dropped").get<std::uint64_t>();
    CHECK(row.at("samples") >= 10);
  }
  CHECK(dropped > 0);
  for (const json& row : measure(shape, {{"MOCK_CAPPED", "1"}})) {
    CHECK(row.at("capped") == 1);
    CHECK(row.at("dropped") == 0);
  }
  const fs::path file = test::write_scratch("shapes.yaml", "shapes:\n" + shape);
  const Ran throughout =
      bench_gpu({"--shapes", file.string(), "--quiet"}, {{"MOCK_THROTTLE", "1"}});
  CHECK(throughout.code == 1);
  const Ran said = bench_gpu({"--shapes", file.string()}, {{"MOCK_THROTTLE", "1"}});
  CHECK(said.errors.find("hot: the device was throttled throughout; an unthrottled device") !=
        std::string::npos);
}

TEST_CASE("a MIG partition is distinguished from the whole device") {
  const json rows = measure("  - {op: set, bytes: 4096}\n", {{"MOCK_MIG", "1"}});
  CHECK(rows.at(0).at("device") == "NVIDIA H100 80GB HBM3");
  CHECK(rows.at(0).at("partition") == "1g.10gb");
  CHECK(rows.at(0).at("multiprocessors") == 16);
}

TEST_CASE("a stream that cannot be held is measured anyway") {
  for (const json& row :
       measure("  - {op: norm, rows: 512, width: 1024}\n", {{"MOCK_NO_WAIT", "1"}}))
    check_time(row, mock::kernel(0, 1, 2 * 2 * 512 * 1024, held(row)));
}

TEST_CASE("a launch that waits for a held stream does not wait for ever") {
  const json rows =
      measure("  - {op: set, bytes: 4096}\n  - {op: copy, bytes: 4096, layout: d2h_pinned}\n",
              {{"MOCK_QUEUE", "20"}});
  CHECK(rows.size() == 3);
  for (const json& row : rows)
    if (row.at("op") == "copy") check_time(row, mock::copy(4096, mock::kHostRate));
}

TEST_CASE("an interrupted run saves its measurements, and says so") {
  // So many that nobody waits for the end.
  std::string text = "shapes:\n  - {op: softmax, width: 1024, rows: [";
  for (int i = 1; i <= 5000; ++i) text += fmt::format("{}{}", i > 1 ? "," : "", i);
  const fs::path file = test::write_scratch("many.yaml", text + "]}\n");
  const fs::path store = test::scratch_folder() / "costs.rehearse";
  test::RunningRehearse running({"bench-gpu", "--shapes", file.string(), "-o", store.string(),
                                 "--format", "json", "--progress"},
                                {{"LD_LIBRARY_PATH", kMocks.string()}});
  running.wait_for(" left");  // the progress after the first measurements
  running.signal(SIGINT);
  const Ran ran = running.wait();
  CHECK(ran.code == 1);
  const json result = json::parse(ran.out);
  CHECK(result.at("interrupted") == true);
  const std::size_t rows = result.at("rows").size();
  CHECK(rows > 0);
  CHECK(rows < 10000);
  CHECK(ran.errors.find(" saved\n") != std::string::npos);
  const Ran shown = test::rehearse({"inspect", store.string(), "--format", "json"});
  REQUIRE(shown.code == 0);
  CHECK(json::parse(shown.out).at("op_costs").size() == rows);
}

TEST_CASE("wrong options and files are reported before anything is measured") {
  const Ran unknown = bench_gpu({"--ops", "gemm,covn"});
  CHECK(unknown.code == 2);
  CHECK(unknown.errors.find("did you mean 'conv'?") != std::string::npos);
  CHECK(bench_gpu({"--shapes", "a.csv", "--from", "b.json"}).code == 2);
  test::check_failed(bench_gpu({"--shapes", "/nowhere.csv"}), 1, "/nowhere.csv");
  const fs::path file = test::write_scratch("shapes.csv", "op,bytes\nset,4096\n");
  test::check_failed(bench_gpu({"--shapes", file.string(), "--ops", "gemm"}), 1,
                     "no shapes of the requested operations");
  test::check_failed(bench_gpu({"--shapes", file.string(), "-o", file.string()}), 1,
                     "exists and is not a trace store");
  CHECK(test::text_of(file) == "op,bytes\nset,4096\n");
}

TEST_CASE("the shapes of a recording's other plans are measured into its store") {
  const fs::path folder = test::scratch_folder();
  const fs::path store = folder / "job.rehearse";
  const std::string recording = "examples/recordings/two_linears.json";
  REQUIRE(test::rehearse({"import", recording, "-o", store.string()}).code == 0);
  const Ran ran =
      bench_gpu({"--from", recording, "--ops", "gemm", "-o", store.string(), "--format", "json"});
  const json rows = rows_of(ran);
  std::set<std::string> shapes;
  for (const json& row : rows) {
    CHECK(row.at("op") == "gemm");
    shapes.insert(row.at("layout").get<std::string>() + " " + row.at("shape").get<std::string>());
  }
  // As recorded, with half of the columns, and of twice as many samples.
  for (const char* wanted : {"nt m=512 n=1024 k=256 batch=1", "nt m=512 n=512 k=256 batch=1",
                             "nt m=1024 n=1024 k=256 batch=1"})
    CHECK(shapes.contains(wanted));
  const json shown =
      json::parse(test::rehearse({"inspect", store.string(), "--format", "json"}).out);
  CHECK(shown.at("ranks").size() == 1);
  CHECK(shown.at("op_costs").size() == rows.size());
  // A store without a recording is no recording.
  const fs::path costs = folder / "costs.rehearse";
  REQUIRE(bench_gpu({"--from", recording, "--ops", "gemm", "-o", costs.string()}).code == 0);
  test::check_failed(test::rehearse({"replay", costs.string()}), 1, "contains no recording");
}

TEST_CASE("a job uses the measurements of its operations") {
  const fs::path folder = test::scratch_folder();
  const fs::path store = folder / "costs.rehearse";
  REQUIRE(bench_gpu({"--shapes", "examples/shapes/gpt2.yaml", "-o", store.string()}).code == 0);
  const auto simulate = [&](const std::string& more) {
    const fs::path job = test::write_scratch(
        "job.yaml",
        "workload: {model: gpt2}\ntraining: {global_batch: 16, microbatch: 8, dtype: bf16}\n"
        "plan: {tensor: 2}\ncluster: {device: h100_sxm5_80, devices_per_node: 2, nodes: 1}\n" +
            more);
    return test::rehearse({"simulate", job.string(), "--fidelity", "closed"});
  };
  const Ran without = simulate(""), with = simulate("op_costs: " + store.string() + "\n");
  REQUIRE(without.code == 0);
  INFO(with.errors);
  REQUIRE(with.code == 0);
  CHECK(without.out.find("% recorded") == std::string::npos);
  CHECK(with.out.find("% recorded") != std::string::npos);
  CHECK(with.out != without.out);
  test::check_failed(simulate("op_costs: nowhere.rehearse\n"), 1, "nowhere.rehearse");
  test::check_failed(simulate("op_costs: job.yaml\n"), 1,
                     "is not a trace store; a file written by rehearse bench-gpu -o");
  const fs::path recording = folder / "recording.rehearse";
  REQUIRE(test::rehearse({"import", test::kExample, "-o", recording.string()}).code == 0);
  test::check_failed(simulate("op_costs: " + recording.string() + "\n"), 1, "has no op costs");
}

}  // namespace
}  // namespace rehearse
