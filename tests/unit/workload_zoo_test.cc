// Models of the zoo against published numbers of parameters and operations.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "models/workload/zoo.h"
#include "sim/base/csv.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "tests/support/data.h"
#include "tests/support/zoo_model.h"

using namespace rehearse;
using namespace rehearse::workload;

namespace {

Workload found(std::string_view name) {
  Result<Workload> w = test::zoo_model(name);
  INFO(name << ": " << (w ? "" : to_string(w.error())));
  REQUIRE(w);
  return *w;
}

double forward_macs(const Workload& w) {
  double flops = 0;
  for (const Layer& layer : w.layers)
    for (const Op& op : layer.forward) flops += layer.count * flops_of(op).flop();
  return flops / 2;
}

}  // namespace

TEST_CASE("parameters of shipped models are the published ones") {
  // As the papers' authors' or the libraries' releases print them.
  const std::map<std::string_view, double> published = {
      {"alexnet", 61'100'840},
      {"vgg11", 132'863'336},
      {"vgg13", 133'047'848},
      {"vgg16", 138'357'544},
      {"vgg19", 143'667'240},
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"resnext50_32x4d", 25'028'904},
      {"resnext101_32x8d", 88'791'336},
      {"wide_resnet50_2", 68'883'240},
      {"wide_resnet101_2", 126'886'696},
      {"densenet121", 7'978'856},
      {"densenet161", 28'681'000},
      {"densenet169", 14'149'480},
      {"densenet201", 20'013'928},
      {"inception_v3", 23'834'568},  // 27,161,264 with the auxiliary classifier's 3,326,696
      {"mobilenet_v2", 3'504'872},
      {"googlenet", 6'624'904},  // without the auxiliary classifiers
      {"swin_t", 28'288'354},
      {"swin_s", 49'606'258},
      {"swin_b", 87'768'224},
      {"vit_b_16", 86'567'656},
      {"vit_b_32", 88'224'232},
      {"vit_l_16", 304'326'632},
      {"vit_l_32", 306'535'400},
      {"bert_base", 109'482'240},
      {"bert_large", 335'141'888},
      {"roberta_base", 124'645'632},
      {"t5_small", 60'506'624},
      {"t5_base", 222'903'552},
      {"t5_large", 737'668'096},
      {"t5_3b", 2'851'598'336},
      {"t5_11b", 11'307'321'344},
      {"gpt2", 124'439'808},
      {"gpt2_xl", 1'557'611'200},
      {"opt_125m", 125'239'296},
      {"opt_1.3b", 1'315'758'080},
      {"opt_6.7b", 6'658'473'984},
      {"bloom_176b", 176'247'271'424},
      {"llama_7b", 6'738'415'616},
      {"llama_13b", 13'015'864'320},
      {"llama_33b", 32'528'943'616},
      {"llama_65b", 65'285'660'672},
      {"llama2_70b", 68'976'648'192},
      {"llama3_8b", 8'030'261'248},
      {"llama3_70b", 70'553'706'496},
      {"llama3.2_1b", 1'235'814'400},
      {"llama3.2_3b", 3'212'749'824},
      {"mistral_7b", 7'241'732'096},
      {"mixtral_8x7b", 46'702'792'704},
      {"qwen2_0.5b", 494'032'768},
      {"qwen2_7b", 7'615'616'512},
      {"qwen2.5_72b", 72'706'203'648},
      {"qwen3_8b", 8'190'735'360},
      {"qwen3_30b_a3b", 30'532'122'624},
      {"qwen1.5_moe_a2.7b", 14'315'784'192},
      {"deepseek_moe_16b", 16'375'728'128},
      {"deepseek_v2_lite", 15'706'484'224},
      {"deepseek_v2", 235'741'434'880},
      {"deepseek_v3", 671'026'404'352},  // without the module that predicts a second token
      {"mpt_125m", 125'311'488},
      {"mpt_7b", 6'658'859'008},
      {"mpt_70b", 64'862'437'376},
  };
  for (const auto& [name, parameters] : published) {
    INFO(name);
    CHECK(fmt::format("{:.0f}", found(name).parameters()) == fmt::format("{:.0f}", parameters));
  }
}

TEST_CASE("no two names of models or devices are spelled alike") {
  const auto all_found = [](std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
      std::string written(name);
      for (char& c : written) c = c == '_' ? '-' : static_cast<char>(std::toupper(c));
      INFO(written);
      CHECK(spelled_alike(written, names) == name);
    }
  };
  all_found(zoo_names());
  std::vector<std::string_view> devices;
  for (const cluster::Gpu& gpu : cluster::gpus()) devices.push_back(gpu.name);
  for (const cluster::Instance& instance : cluster::instances())
    if (std::ranges::find(devices, instance.name) == devices.end())
      devices.push_back(instance.name);
  all_found(devices);
}

TEST_CASE("every shipped model makes a workload, a family asks for its dimensions") {
  CHECK(zoo().size() > 100);
  for (const ZooModel& model : zoo()) {
    INFO(model.name);
    CHECK_FALSE(model.source.empty());
    CHECK(test::zoo_model(model.name).has_value() != model.family);
    const Result<Workload> compiled =
        test::zoo_model(model.name, {.attention = Attention::kUnfused,
                                     .elementwise = Elementwise::kCompiled,
                                     .dropout = true,
                                     .loss = Loss::kCompiled});
    CHECK(compiled.has_value() != model.family);
  }
  const Result<Workload> family = test::zoo_model("gpt");
  REQUIRE_FALSE(family);
  CHECK(to_string(family.error()) == "'gpt' has no hidden size; a whole number above zero");
  const Result<Workload> wrong = test::zoo_model("resnet500");
  REQUIRE_FALSE(wrong);
  CHECK(to_string(wrong.error()) == "unknown model 'resnet500'; did you mean 'resnet50'?");
}

TEST_CASE("compiling moves fewer bytes, with the same matrix operations") {
  for (const std::string_view name : {"gpt2", "llama2_7b", "resnet50", "mixtral_8x7b", "swin_t"}) {
    INFO(name);
    const auto bytes = [&](Elementwise elementwise) {
      const Result<Workload> w =
          test::zoo_model(name, {.elementwise = elementwise, .dropout = true});
      REQUIRE(w);
      double sum = 0;
      for (const Layer& layer : w->layers)
        for (const std::vector<Op>* ops : {&layer.forward, &layer.backward})
          for (const Op& op : *ops)
            if (flops_of(op).flop() == 0) sum += layer.count * op.bytes.b();
      return std::pair(sum, w->model_flops().flop());
    };
    const auto [eager, eager_flops] = bytes(Elementwise::kEager);
    const auto [compiled, compiled_flops] = bytes(Elementwise::kCompiled);
    CHECK(compiled < eager);
    CHECK(compiled > 0.3 * eager);
    CHECK(compiled_flops == eager_flops);
    const auto [unfused, unfused_flops] = bytes(Elementwise::kUnfused);
    CHECK(unfused >= eager);
    CHECK(unfused_flops == eager_flops);
  }
}

TEST_CASE("totals of the fact table") {
  const auto path = test::shared_data("../facts/models.csv");
  SKIP_WITHOUT_DATA(path);
  const Result<CsvTable> table = CsvTable::load(*path);
  REQUIRE(table);
  std::set<std::string_view> compared;
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const std::string name(table->cell(row, "model"));
    // Recalled and marked as unverified there.
    if (table->cell(row, "type") == "swin_moe") continue;
    INFO(name);
    const Workload w = found(name);
    compared.insert(table->cell(row, "type"));
    double parameters = **table->number(row, "params_total");
    double macs = **table->number(row, "gmacs_forward_per_sample") * 1e9;
    const std::string_view type = table->cell(row, "type");
    const double hidden = table->number(row, "hidden")->value_or(0);
    const double length = table->number(row, "seq_len")->value_or(0);
    const double layers = w.layer_count() - 2.;
    const bool biased = name.substr(0, 3) == "gpt" || name.substr(0, 8) == "megatron" ||
                        type == "encoder" || type == "vit";
    // It counts a multiplication for each bias and token.
    if (biased) {
      const double wide = name == "gpt3_13b" ? 40 * 128 : hidden;  // all heads
      macs -= layers * length * (3 * wide + 6 * hidden);
    }
    if (type == "encoder_decoder") {
      // It omits the norm after the encoder and the biases of relative positions, 32 a head
      // for each stack; and the scores of cross-attention with their product.
      const double heads = **table->number(row, "heads");
      const double head = name == "t5_3b" || name == "t5_11b" ? 128 : 64;
      parameters += hidden + 2 * 32 * heads;
      macs += layers / 2 * 2 * length * length * heads * head;
    } else if (type == "encoder") {
      macs += hidden * hidden;  // the pooler, whose parameters it counts
    } else if (type == "vit") {
      // It leaves out the multiplications of patches and classifier.
      const double patch = name == "vit_h_14" ? 14 : 16;
      macs += (length - 1) * 3 * patch * patch * hidden + 1000 * hidden;
    } else if (name == "dlrm_dcnv2_mlperf_v3") {
      parameters += 3 * (2. * 3456 * 512 + 3456);  // cross layers, whose multiplications it counts
    } else if (type == "dlrm") {
      macs +=
          (27. * 27 - 27. * 26 / 2) * hidden;  // it counts each pair once, kernels compute twice
    }
    CHECK(fmt::format("{:.0f}", w.parameters()) == fmt::format("{:.0f}", parameters));
    // Four decimals of 1e9 are printed, five for DLRM.
    CHECK(forward_macs(w) == Approx(macs).margin(type == "dlrm" ? 0.6e4 : 0.6e6));
  }
  CHECK(compared.size() == 7);
}

TEST_CASE("convolutional networks meet the fact table layer by layer") {
  const auto path = test::shared_data("../facts/model_layers.csv");
  SKIP_WITHOUT_DATA(path);
  const Result<CsvTable> table = CsvTable::load(*path);
  REQUIRE(table);
  // The table has a row per operation; here batch norm belongs to its convolution, and branches and
  // shortcuts may come in another order. So: the multisets of operations.
  std::map<std::string, std::multiset<std::pair<double, double>>> expected;  // MACs, outputs
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const std::string kind(table->cell(row, "kind"));
    if (kind != "conv" && kind != "fc") continue;
    const std::string model(table->cell(row, "model"));
    if (model.substr(0, 4) == "dlrm") continue;
    expected[model].insert({**table->number(row, "macs_forward_per_sample"),
                            **table->number(row, "output_elems_per_sample")});
  }
  CHECK(expected.size() == 8);
  for (const auto& [name, operations] : expected) {
    INFO(name);
    std::multiset<std::pair<double, double>> made;
    for (const Layer& layer : found(name).layers)
      for (const Op& op : layer.forward)
        if (flops_of(op).flop() > 0) made.insert({flops_of(op).flop() / 2, op.batch * op.m * op.n});
    CHECK(made == operations);
  }
}

TEST_CASE("measured layers of Llama and Qwen save the bytes of the formula") {
  // Galvatron's profiles with sequence parallelism, so that a tensor degree divides everything:
  // MiB a sample and layer, parameters at four bytes. Fitted on none of them.
  struct Row {
    std::string_view file;
    std::string_view model;
    std::string_view sequence;
  };
  for (const Row& row :
       {Row{"llama2-70b", "llama2_70b", "4096"}, Row{"llama3-8b", "llama3_8b", "8192"},
        Row{"llama3-70b", "llama3_70b", "8192"}, Row{"qwen2.5-32b", "qwen2.5_32b", "8192"}}) {
    INFO(row.model);
    const auto path = test::shared_data(fmt::format(
        "galvatron-profiles/older/visualizer__memory_profiling_bf16_{}.json", row.file));
    SKIP_WITHOUT_DATA(path);
    const Result<YamlFile> file = YamlFile::load(*path);
    REQUIRE(file);
    const std::optional<YamlMap> layer = file->root().map("layertype_0_sp");
    REQUIRE(layer);
    const std::optional<YamlMap> at = layer->map(row.sequence);
    REQUIRE(at);
    const Workload w = found(row.model);
    CHECK(w.tokens_per_sample == std::stod(std::string(row.sequence)));
    CHECK(w.layers[1].parameters() ==
          Approx(*at->required<double>("parameter_size") * (1 << 20) / 4).epsilon(2e-3));
    const double saved = *at->map("tp_activation_per_bsz_dict")->required<double>("1");
    CHECK(w.layers[1].saved_bytes().b() == Approx(saved * (1 << 20)).epsilon(5e-3));
  }
}

TEST_CASE("the worked example of docs/concepts/workload.md") {
  const double h = 12288, s = 2048, v = 50257;
  const Result<Workload> w =
      test::zoo_model("gpt3_175b", {.attention = Attention::kUnfused, .dropout = true});
  REQUIRE(w);
  REQUIRE(w->layers[1].count == 96);
  CHECK(w->layers[1].parameters() == 12 * h * h + 13 * h);
  CHECK(w->parameters() == 174'604'259'328);
  CHECK(w->model_flops().flop() ==
        Approx(6 * (96 * (12 * h * h * s + 2 * s * s * h) + s * h * v)).epsilon(1e-12));
  CHECK(w->model_flops().flop() == Approx(2.2044e15).epsilon(1e-5));
  CHECK(w->layers[1].saved_bytes().b() == 34 * s * h + 5 * 96 * s * s);
}

TEST_CASE("activations of ResNet-50 are its outputs, except those of ReLU and sums") {
  // 22.43 million outputs of convolutions, batch norms, pools and the classifier, where sums are
  // done in place; and 64-bit positions of the largest of each 3 x 3 for the pool.
  const Result<Workload> w = test::zoo_model("resnet50", {.dtype = Dtype::kFp32});
  REQUIRE(w);
  double saved = 0;
  for (const Layer& layer : w->layers) saved += layer.saved_bytes().b();
  const double sample = 3. * 224 * 224;
  const double positions = 64. * 56 * 56;
  // 2048 means of the last channels: a pool that the count of outputs has not.
  CHECK(saved == Approx(4 * (22'429'672 + sample + 2048) + 8 * positions));
}

TEST_CASE("branches are joined by layers that name their inputs") {
  const Workload w = found("resnet18");
  std::size_t joins = 0;
  for (const Layer& layer : w.layers) joins += layer.inputs.size() == 2;
  CHECK(joins == 8);
  CHECK(found("vgg16").layers[3].inputs.empty());
}
