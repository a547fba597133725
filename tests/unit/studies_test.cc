// Studies of published data, where they are next to the source tree; and data that cannot be read.
#include <cmath>
#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"
#include "tests/validation/studies/carried_accuracy.h"
#include "tests/validation/studies/collective_accuracy.h"
#include "tests/validation/studies/layer_accuracy.h"
#include "tests/validation/studies/make_shipped.h"
#include "tests/validation/studies/operation_accuracy.h"
#include "tests/validation/studies/operation_tables.h"
#include "tests/validation/studies/withheld_accuracy.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

/// Summaries of a study, by case.
std::map<std::string, SuiteSummary> cases_of(const Result<TimedAccuracy>& found) {
  INFO((found ? "" : to_string(found.error())));
  REQUIRE(found);
  std::map<std::string, SuiteSummary> cases;
  for (const SuiteSummary& each : summarize("study", *found))
    cases.emplace(each.name.substr(6), each);
  return cases;
}

void check_fails(const Result<TimedAccuracy>& found, const std::string& says) {
  REQUIRE(!found);
  CHECK_THAT(to_string(found.error()), Contains(says));
}

TEST_CASE("layers of Galvatron are predicted within a tenth") {
  const auto data = test::shared_data("galvatron-profiles");
  SKIP_WITHOUT_DATA(data);
  const Result<TimedAccuracy> found = measure_layer_accuracy(data->parent_path());
  std::map<std::string, SuiteSummary> cases = cases_of(found);
  const SuiteSummary& layers = cases.at("galvatron");
  CHECK(layers.blind_rows == 86);
  CHECK(layers.fitted_rows == 0);
  CHECK(layers.median_error < 0.04);
  CHECK(layers.p90_error < 0.1);
  CHECK(std::abs(layers.bias) < 0.04);
  CHECK(layers.interval_coverage.value() > 0.9);
  CHECK(cases.at("galvatron, the host decides").fitted_rows == 8);
  CHECK(cases.at("galvatron, the host decides").p90_error < 0.1);
  const auto convolutions = std::ranges::find(found->cases, "triosim, layers", &TimedCase::name);
  REQUIRE(convolutions != found->cases.end());
  CHECK(convolutions->rows.size() == 26);
}

TEST_CASE("kernel time on MI300X from recordings on H100, nothing fitted") {
  const auto data = test::shared_data("tracelens-h100-mi300");
  SKIP_WITHOUT_DATA(data);
  std::map<std::string, SuiteSummary> cases =
      cases_of(measure_carried_accuracy(data->parent_path()));
  const SuiteSummary& carried = cases.at("H100 to MI300X");
  CHECK(carried.blind_rows == 3);
  CHECK(std::abs(carried.bias) < 0.15);
  CHECK(std::abs(carried.worst_error) < 0.2);
  CHECK(carried.interval_coverage.value() == 1.0);
}

TEST_CASE("jobs on a GPU known by its datasheet and a table of products") {
  const auto data = test::shared_data("llm-foundry-mpt");
  SKIP_WITHOUT_DATA(data);
  std::map<std::string, SuiteSummary> cases = cases_of(measure_withheld_accuracy(*data));
  for (const char* device : {"a100_sxm4_40", "a100_sxm4_80", "h100_sxm5_80"}) {
    INFO(device);
    CHECK(cases.at(device).median_error < 0.1);
    CHECK(cases.at(device).interval_coverage.value() > 0.9);
  }
}

TEST_CASE("the same kernels do as much per multiprocessor and clock on another device") {
  const auto facts = [](const char* device) {
    return compute::facts_of(**cluster::find_gpu(device));
  };
  // 0.35 · 312 TFLOP/s · (132 · 1980) / (108 · 1410) / 989.4 TFLOP/s.
  const auto share = same_kernels_share(0.35, facts("a100_sxm4_80"), facts("h100_sxm5_80"));
  REQUIRE(share);
  CHECK(*share == Approx(0.189).epsilon(0.01));
  CHECK(*same_kernels_share(*share, facts("h100_sxm5_80"), facts("a100_sxm4_80")) == Approx(0.35));
  CHECK_FALSE(same_kernels_share(0.35, facts("a100_sxm4_80"), facts("mi300x")));
  compute::DeviceFacts unclocked = facts("h100_sxm5_80");
  unclocked.boost_hz.reset();
  CHECK_FALSE(same_kernels_share(0.35, facts("a100_sxm4_80"), unclocked));
}

TEST_CASE("tables of layers that cannot be read are one line") {
  const fs::path folder = test::scratch_folder();
  const fs::path network = folder / "triosim-h100" / "processed_bs8_resnet50";
  fs::create_directories(network);
  const auto failed = [&](const std::string& table, const std::string& says) {
    std::ofstream(network / "trace.csv") << table;
    check_fails(measure_layer_accuracy(folder), says);
  };
  failed("stage,Operator_cuda_time\nforward,1\n", "Operator_cudatime");
  failed("stage,Operator_cudatime\nforward,12\n",
         "trace.csv: no operator of stage 'backward' took time; operators of stages 'forward' and "
         "'backward'");
  fs::rename(network, folder / "triosim-h100" / "processed_bs8_resnet51");
  std::ofstream(folder / "triosim-h100" / "processed_bs8_resnet51" / "trace.csv")
      << "stage,Operator_cudatime\nforward,12\nbackward,20\n";
  check_fails(measure_layer_accuracy(folder), "unknown model 'resnet51'");
}

TEST_CASE("a table of collectives without the rows of a device is one line") {
  const auto tables = test::shared_data("aiconfigurator-kernels");
  SKIP_WITHOUT_DATA(tables);
  const fs::path data = tables->parent_path(), folder = test::scratch_folder();
  for (const auto& entry : fs::directory_iterator(data))
    if (entry.is_directory())
      fs::create_directory_symlink(entry.path(), folder / entry.path().filename());
  std::string kept;
  const std::string text = test::text_of(data / ".." / "facts" / "nccl_measured.csv");
  for (const std::string_view line : split(text, '\n'))
    if (!line.starts_with("b300")) kept += std::string(line) + "\n";
  std::ofstream(folder / "nccl_measured.csv") << kept;
  const Result<CollectiveAccuracy> found = measure_collective_accuracy(folder);
  REQUIRE(!found);
  CHECK_THAT(to_string(found.error()), Contains("nccl_measured.csv: has no rows of b300"));
}

TEST_CASE("the shipped calibrations are those fitted to the tables") {
  const auto data = test::shared_data("aiconfigurator-kernels");
  SKIP_WITHOUT_DATA(data);
  const fs::path folder = test::scratch_folder();
  const Result<Table> made = make_collectives(data->parent_path(), folder);
  INFO((made ? "" : to_string(made.error())));
  REQUIRE(made);
  for (const std::string& name : test::names_in(folder))
    CHECK(test::text_of(folder / name) ==
          test::text_of(test::source_file("models/comm/calibrations") / name));
}

TEST_CASE("operations of an incomplete folder are one line, not a crash") {
  const fs::path data = test::scratch_folder(), gemm = data / "aiconfigurator-kernels";
  fs::create_directories(gemm);
  std::ofstream(gemm / "gemm_h100.csv")
      << "device,gemm_dtype,m,n,k,latency\nNVIDIA H100 80GB HBM3,fp8,4096,4096,4096,0.2\n";
  const Result<OperationAccuracy> found = measure_operation_accuracy(data);
  REQUIRE(!found);
  CHECK_THAT(to_string(found.error()), Contains("no table has products in fp32"));
  CHECK(!make_operations(data, data));
}

TEST_CASE("tables of attention: grouped heads, copies into a cache, kernels of the device") {
  const fs::path data = test::scratch_folder();
  const auto read = [&](const char* name, const char* text) {
    std::ofstream(data / name) << text;
    const auto tables = read_attention_csv(data / name);
    REQUIRE(tables);
    REQUIRE(tables->size() == 1);
    return tables->front();
  };
  const OperationTable context =
      read("a100_sxm__vllm-0.14.0__context_attention.csv",
           "kernel_source,batch_size,isl,num_heads,num_key_value_heads,latency\n"
           "vllm_flash_attn,2,256,32,8,0.5\n");
  CHECK(context.measured.facts.name == "a100_sxm4_80");
  CHECK(context.kernels == compute::AttentionKernels::kFlashAttention2);
  const workload::Op& op = context.measured.rows.front().op;
  CHECK((op.batch == 16 && op.m == 4 * 256 && op.n == 256 && op.k == 128 && op.causal));
  // 16 · 128 · (2 · 1024 + 2 · 256) elements, and keys and values read and written once more.
  CHECK(workload::bytes_of(op).b() == 16 * 128 * 2 * (2 * 1024 + 2 * 256 + 4 * 256));
  const OperationTable decode =
      read("h100_sxm__vllm-0.19.0__generation_attention.csv",
           "kernel_source,batch_size,num_heads,num_key_value_heads,head_dim,step,latency\n"
           "vllm_flash_attn,2,32,8,64,1023,0.02\n");
  CHECK(decode.kernels == compute::AttentionKernels::kAsynchronous);
  const workload::Op& one = decode.measured.rows.front().op;
  CHECK((one.batch == 16 && one.m == 4 && one.n == 1024 && one.k == 64 && !one.causal));
  CHECK(one.bytes.b() == 0);
}

TEST_CASE("laws of pairs are made from Gavel's tables") {
  const fs::path data = test::scratch_folder(), into = data / "gavel-throughputs";
  fs::create_directories(into);
  std::ofstream(into / "colocated.csv")
      << "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,other_job,other_batch,"
         "other_num_gpus,steps_per_s,other_steps_per_s\n"
         "simulation,v100,yes,A,8,1,B,,1,2,8\nsimulation,v100,yes,A,8,1,A,8,1,2,2\n";
  std::ofstream(into / "isolated.csv")
      << "file,gpu,gpus_on_one_server,job,batch_size_per_gpu,num_gpus,steps_per_s\n"
         "simulation,v100,yes,A,8,1,4\nsimulation,v100,yes,B,,1,10\n";
  REQUIRE(make_pairs(data, into));
  CHECK_THAT(test::text_of(into / "v100_sxm2_16.yaml"),
             Contains("\"A with B\"") && Contains("rows: 4"));
  CHECK(!make_pairs("nowhere", into));
}

}  // namespace
}  // namespace rehearse::cli
