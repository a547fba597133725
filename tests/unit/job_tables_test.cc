#include "cli/validation/job_tables/job_tables.h"

#include <fstream>
#include <map>

#include <catch2/catch.hpp>

#include "cli/validation/job_tables/job_workload.h"
#include "cli/validation/job_tables/shapes.h"
#include "tests/support/data.h"

namespace rehearse::cli {
namespace {

using strategies::Recompute;

std::filesystem::path table(const std::string& text) {
  const std::filesystem::path path = test::scratch_folder() / "table.csv";
  std::ofstream(path) << text;
  return path;
}

const char* const kTorchtitan =
    "gpu,model,num_gpus,global_batch,local_batch,seq_len,precision,torch_compile,parallelism,"
    "activation_ckpt,tokens_per_s_per_gpu,peak_mem_gib\n";

TEST_CASE("a row of torchtitan becomes a plan") {
  const auto read = read_torchtitan(table(std::string(kTorchtitan) +
                                          "H100-96GB-500W,llama3.1-405B,512,,8,131072,float8,yes,"
                                          "fsdp2 tp8 pp8 cp4 asynctp 1f1b,full,31,77.1\n"));
  REQUIRE(read);
  REQUIRE(read->rows.size() == 1);
  const JobRow& row = read->rows.front();
  CHECK(row.model.hidden == 16384);
  CHECK(row.model.kv_heads == 8);
  CHECK(row.plan.data == 2);
  CHECK(row.plan.tensor == 8);
  CHECK(row.plan.pipeline == 8);
  CHECK(row.plan.context == 4);
  CHECK(row.plan.zero == 3);
  CHECK(row.plan.asynchronous_tensor);
  CHECK(row.training.microbatch == 1);
  CHECK(row.training.global_batch == 16);
  CHECK(row.training.recompute == Recompute::kFull);
  CHECK(row.devices() == 512);
  CHECK(row.peak->gib() == Approx(77.1));
  // 16 samples of 131072 tokens on 512 devices at 31 tokens/s each.
  CHECK(row.step->s() == Approx(16.0 * 131072 / (512 * 31)));
}

TEST_CASE("selective recomputation of torchtitan runs what it did not save") {
  const auto names = [](const std::string& layout, const std::string& devices) {
    const auto read =
        read_torchtitan(table(std::string(kTorchtitan) + "H100-96GB-500W,llama3.1-8B," + devices +
                              ",,2,8192,bf16,yes," + layout + ",selective,6000,\n"));
    REQUIRE(read);
    REQUIRE(read->rows.size() == 1);
    const auto w = workload_of(read->rows.front());
    REQUIRE(w);
    std::vector<std::string> products;
    for (const workload::Layer& layer : w->layers)
      for (const workload::Op& op : layer.recompute)
        if (op.kind == workload::OpKind::kGemm || op.kind == workload::OpKind::kAttention)
          products.emplace_back(op.name);
    return products;
  };
  CHECK(names("fsdp8", "8") == std::vector<std::string>{"key", "projection", "up"});
  CHECK(names("fsdp8 tp8", "64") == std::vector<std::string>{"key", "up"});
}

TEST_CASE("rows of NeMo take from recipes what no column says") {
  const auto row_of = [](const std::string& release, const std::string& model,
                         const std::string& system, const std::string& expert) {
    const auto read = read_nemo(
        table("release,task,model,system,gpus,precision,gbs,mbs,seq_len,fsdp,tp,pp,cp,vp,ep,etp,ga,"
              "tokens_per_s_per_gpu,model_tflops_per_gpu\n" +
              release + " NeMo Container,Pre-Training Performance," + model + "," + system +
              ",64,BF16,1280,4,4096,0,1,1,1,n/a," + expert + ",,,1000,100\n"));
    REQUIRE(read);
    REQUIRE(read->rows.size() == 1);
    return read->rows.front();
  };
  const JobRow before = row_of("26.04.01", "GPT OSS 120B", "DGX-GB200", "64");
  CHECK_FALSE(before.fused_experts);
  CHECK(before.recomputed.size() == 4);
  CHECK(before.plan.expert_exchange == strategies::ExpertExchange::kTokensOnce);
  CHECK(row_of("26.06", "GPT OSS 120B", "DGX-GB200", "64").fused_experts);
  CHECK_FALSE(row_of("26.06.01", "GPT OSS 120B", "DGX-GB200", "64").fused_experts);
  CHECK(row_of("26.06.01", "Qwen3_30B_a3B", "DGX-H100", "8").fused_experts);
  CHECK(row_of("26.04", "GPT OSS 120B", "DGX-H100", "8").plan.expert_exchange ==
        strategies::ExpertExchange::kTokens);
}

TEST_CASE("a row without words is left out, with its reason") {
  const auto read =
      read_torchtitan(table(std::string(kTorchtitan) +
                            "H100-96GB-500W,llama9-1T,8,,1,8192,bf16,no,fsdp8,full,1,\n"
                            "H100-96GB-500W,llama3-8B,16,,1,8192,bf16,no,fsdp8,full,1,\n"
                            "H100-96GB-500W,llama3-8B,8,,1,8192,bf16,no,ddp8,full,1,\n"));
  REQUIRE(read);
  CHECK(read->rows.empty());
  REQUIRE(read->left_out.size() == 3);
  CHECK(read->left_out[0] == "llama9-1T fsdp8 8192 bf16 full eager: a model of unknown shape");
  CHECK(read->left_out[1] ==
        "llama3-8B fsdp8 8192 bf16 full eager: the degrees do not make up the GPUs");
  CHECK(read->left_out[2] == "llama3-8B ddp8 8192 bf16 full eager: 'ddp8'");
}

TEST_CASE("a table without a column says which") {
  const auto path = table("params_billion,num_gpus\n1,8\n");
  const auto read = read_vtrain(path, Recompute::kFull);
  REQUIRE_FALSE(read);
  CHECK(to_string(read.error()).find("hidden") != std::string::npos);
}

TEST_CASE("SC21 leaves microbatch and interleaving open") {
  const auto read = read_sc21_scaling(
      table("params_billion,heads,hidden,layers,tp,pp,num_gpus,global_batch,tflops_per_gpu\n"
            "529.6,128,20480,105,8,35,2520,2520,163\n"));
  REQUIRE(read);
  const JobRow& row = read->rows.front();
  CHECK(row.plan.data == 9);
  // 105 layers on 35 stages: one or three chunks; 2520 / 9 = 280 microbatches of 1, 140 of 2, 70
  // of 4.
  CHECK(row.choices.size() == 6);
  CHECK(row.training.microbatch == 1);
  CHECK(row.plan.interleave == 1);
  // 96 B s l h² (1 + s/6h + V/16lh) / (gpus · rate)
  const double flops = 96.0 * 2520 * 2048 * 105 * 20480.0 * 20480 *
                       (1 + 2048 / (6.0 * 20480) + 51200 / (16.0 * 105 * 20480));
  CHECK(row.step->s() == Approx(flops / (2520 * 163e12)));
}

TEST_CASE("names of models in any spelling") {
  CHECK(named_shape("LLAMA3.1_405B")->layers == 126);
  CHECK(named_shape("llama3.1-405B")->layers == 126);
  CHECK(named_shape("Qwen3_235B_a22B")->experts == 128);
  CHECK_FALSE(named_shape("DeepSeekV3"));
  CHECK(mpt_shape("7b")->hidden == 4096);
}

TEST_CASE("recalled jobs say where they are from and what was assumed") {
  std::size_t rows = 0;
  for (const JobTable& table : recalled_jobs())
    for (const JobRow& row : table.rows) {
      INFO(table.name << ": " << row.name);
      const strategies::Plan& p = row.plan;
      CHECK(p.data * p.tensor * p.pipeline * p.context == row.devices());
      REQUIRE(row.assumed.size() == 1);
      CHECK_FALSE(row.assumed.front().empty());
      CHECK(row.step->s() > 1);
      ++rows;
    }
  CHECK(rows >= 20);
}

TEST_CASE("the published tables read") {
  const auto data = test::shared_data(".");
  SKIP_WITHOUT_DATA(data);
  const auto tables = read_job_tables(*data);
  if (!tables) FAIL(to_string(tables.error()));
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (const JobTable& t : *tables) {
    counts[t.name] = {t.rows.size(), t.left_out.size()};
    for (const JobRow& row : t.rows) {
      INFO(t.name << ": " << row.name);
      const strategies::Plan& p = row.plan;
      CHECK(p.data * p.tensor * p.pipeline * p.context == row.devices());
      CHECK((row.step || row.peak || row.activations || row.activation_share));
    }
  }
  CHECK(counts["vtrain-multi"].first == 71);
  CHECK(counts["mpt"].first == 125);
  CHECK(counts["torchtitan"].first == 20);
  CHECK(counts["sc21-table1"].first == 6);
  CHECK(counts["sc21-table2"].first == 8);
  CHECK(counts["seqsel-table5"].first == 4);
  CHECK(counts["mlperf-gpt3"].first == 1);
  CHECK(counts["dlperf-gpt"].first == 24);
  CHECK(counts["nemo"].first >= 30);
}

}  // namespace
}  // namespace rehearse::cli
