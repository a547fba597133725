#include "tests/validation/studies/memory_accuracy.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <fmt/core.h>

#include "cli/validation/judge.h"
#include "sim/base/text.h"
#include "sim/cluster/catalog.h"
#include "strategies/lay_out.h"
#include "tests/validation/studies/galvatron.h"
#include "tests/validation/studies/measured_jobs.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using memory::Assumptions;
using memory::Device;
using memory::StageMemory;

/// What the peaks of a case are, and what the constants come from.
std::string about_peaks(std::string_view name) {
  if (name == "torchtitan")
    return "peak reserved of Llama 3.1 8B and 70B with recomputation as stated; bytes per logit "
           "and "
           "the reserve of 5 % were chosen on them";
  if (name == "torchtitan, pipeline")
    return "Llama 3.1 405B; that sharded stages keep weights and gradients whole was inferred from "
           "them";
  if (name == "torchtitan, recomputation not stated")
    return "\"config default\", taken for selective";
  if (name.starts_with("megatron-golden"))
    return "bytes allocated on the last rank in functional tests of Megatron-LM; workspaces were "
           "fitted to them";
  if (name.starts_with("nanotron"))
    return "peak reserved in a sweep of layouts; which blocks are held, and the upper side of the "
           "reserve, were chosen with them in sight";
  if (name == "gpt2-rented")
    return "memory of the device in a compiled step of GPT-2 on 13 kinds of GPUs; the bytes per "
           "logit of a compiled loss were chosen on them";
  if (name.starts_with("qwen"))
    return "memory of the device in fine-tuning, mean over GPUs; adapters, and all weights with "
           "ZeRO-3 of DeepSpeed";
  if (name.starts_with("bigscience"))
    return "memory of the device in a search of layouts; buffers of NCCL follow its text";
  return "measured peaks";
}

Estimate<Bytes> exact(Bytes value) { return {value, value, value, Provenance::kExtrapolated}; }

class Measurer {
 public:
  Measurer(fs::path data, MemoryAccuracy& accuracy) : data_(std::move(data)), accuracy_(accuracy) {}

  Status run() {
    fs::path folder = TRY(converted(data_));
    for (const auto& [name, jobs] : {std::pair("jobs", &jobs_), std::pair("studies", &parts_)}) {
      std::vector<MeasuredJob> read = TRY(read_job_folder(folder / name));
      *jobs = std::move(read);
    }
    peaks_ = folder / "memory";
    for (const auto step :
         {&Measurer::megatron, &Measurer::galvatron, &Measurer::peaks, &Measurer::jobs})
      TRY((this->*step)());
    return {};
  }

 private:
  void add(MemoryCase scored) {
    if (!scored.rows.empty()) accuracy_.cases.push_back(std::move(scored));
  }
  void refuse(const std::string& what, const Error& error) {
    accuracy_.refused.push_back(what + ": " + to_string(error));
  }

  static Result<Device> device_of(const MeasuredJob& row) {
    const cluster::Gpu& gpu = *TRY(cluster::find_gpu(row.job().cluster.devices().front().model));
    return memory::device_of(gpu);
  }

  /// Of the fullest rank, weights and their like of twelve h² a layer as the paper has them.
  Status megatron() {
    MemoryCase states{.name = "megatron states",
                      .about =
                          "arXiv:2205.05198 figure 1, by formula: 18 bytes a parameter of "
                          "12 h² a layer; no constant fitted"};
    MemoryCase activations{.name = "megatron activations",
                           .about = "the same figure: activations of the first stage"};
    MemoryCase shares{.name = "megatron activation shares",
                      .about =
                          "figure 7: activations as a share of those without recomputation "
                          "and sequence parallelism"};
    std::map<std::string, Bytes> whole;  // of figure 7, by model
    for (const MeasuredJob& row : parts_) {
      const auto parts = blocks_of(row);
      if (!parts) {
        refuse(row.name, parts.error());
        continue;
      }
      if (const auto gib = row.number("states_gib"))
        states.rows.push_back({row.name, exact(parts->states()), Bytes::gib(*gib)});
      if (const auto gib = row.number("activations_gib"))
        activations.rows.push_back({row.name, exact(parts->activations), Bytes::gib(*gib)});
      if (const auto share = row.number("activation_share")) {
        const std::string model = row.name.substr(0, row.name.find(' '));
        const Bytes base = whole.try_emplace(model, parts->activations).first->second;
        shares.rows.push_back({row.name, exact(parts->activations), base * *share});
      }
    }
    add(std::move(states));
    add(std::move(activations));
    add(std::move(shares));
    return {};
  }

  /// The first stage at the end of its forward, blocks without their vectors alone: what the
  /// figures count.
  static Result<memory::Parts> blocks_of(const MeasuredJob& row) {
    workload::Layout layout = TRY(laid_out(row));
    const double hidden = row.number("workload.hidden").value_or(0);
    const double matrix = hidden * std::floor(hidden / row.job().spec.plan.tensor);
    workload::Stage& stage = layout.stages.front();
    for (workload::Chunk& chunk : stage.chunks) {
      std::erase_if(chunk.layers, [](const workload::Layer& l) {
        return l.weights.size() < 2 || l.name == "embedding" || l.name == "head";
      });
      for (workload::Layer& layer : chunk.layers)
        std::erase_if(layer.weights, [&](const workload::Weights& w) {
          return static_cast<double>(w.count) < matrix;
        });
    }
    const Device device = TRY(device_of(row));
    memory::Parts most;
    for (const memory::Moment& m : memory::memory_curve(layout, stage, device))
      if (m.phase == "forward" && m.parts.activations >= most.activations) most = m.parts;
    return most;
  }

  // What a profile's strategies were scored with.
  struct Scores {
    MemoryCase states, activations, peak;
  };

  Status galvatron() {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(data_))
      if (entry.path().extension() == ".json" &&
          entry.path().filename().string().find("memory_profiling_") != std::string::npos)
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());

    const std::string constants =
        "; a search on the fitted files alone finds 0.3 and 1.8 layers of transients, three copies "
        "of a layer's weights and two in a pipeline; the model has 0.45 instead of 0.3. The "
        "phases were chosen with all rows in sight";
    const auto scores = [&](const std::string& which, const std::string& about, bool blind) {
      return Scores{
          {.name = "galvatron " + which + ", states",
           .about = about + "; 16 bytes a parameter, 18 MiB and masks",
           .blind = blind},
          {.name = "galvatron " + which + ", activations",
           .about = about + "; formulas. The additional masks, copies and vectors of a family were "
                            "seen on its rows",
           .blind = blind},
          {.name = "galvatron " + which + ", peak",
           .about = about + constants,
           .blind = blind,
           .intervals = true}};
    };
    Scores fitted = scores("fitted", "GPT and Llama with fused attention, hidden 4096", false);
    Scores known = scores("known", "other files of GPT, Llama and Baichuan", true);
    Scores bert =
        scores("bert", "BERT, attention unfused; masks and head were chosen on them", false);
    Scores measured =
        scores("measured",
               "any file, a block's activations by one strategy's first two layers, on all "
               "other strategies",
               true);
    MemoryCase layers{.name = "galvatron large layers",
                      .about =
                          "activations a layer of Llama and Qwen up to 72B by tensor "
                          "parallelism; the form, 2u more where it is above 1, was chosen on "
                          "them",
                      .blind = false};
    for (const fs::path& file : files) {
      const GalvatronProfile profile = TRY(read_galvatron(file, accuracy_.refused));
      score_layers(profile, layers);
      const std::string& family = profile.family.name;
      const bool is_bert = family.find("bert") != std::string::npos;
      const bool fit =
          profile.model.hidden == 4096 && (family.find("gpt_fa") != std::string::npos ||
                                           family.find("llama_fa") != std::string::npos);
      if (!profile.family.unfused) score(profile, is_bert ? bert : fit ? fitted : known, 1, {});
      if (const auto factor = measured_factor(profile))
        score(profile, measured, factor->first, factor->second);
    }
    for (Scores* s : {&fitted, &known, &bert, &measured})
      for (MemoryCase* c : {&s->states, &s->activations, &s->peak}) add(std::move(*c));
    add(std::move(layers));
    return {};
  }

  void score_layers(const GalvatronProfile& profile, MemoryCase& into) {
    for (const GalvatronLayerRow& row : profile.layer_rows) {
      const Result<workload::Layer> block =
          galvatron_block(profile, row.sequence, row.tensor, true);
      if (!block) {
        refuse(profile.file, block.error());
        continue;
      }
      const Bytes more =
          Bytes::b(row.tensor > 1 ? 2.0 * row.sequence * profile.model.hidden / row.tensor : 0);
      into.rows.push_back({fmt::format("{} tp{}", profile.file, row.tensor),
                           exact(block->saved_bytes() + more), row.activations});
    }
  }

  /// From the runs of one and two layers of the first strategy that has both, without pipeline and
  /// recomputation: what a layer keeps against the formula. With the key of that strategy.
  std::optional<std::pair<double, std::string>> measured_factor(const GalvatronProfile& profile) {
    for (const GalvatronRow& one : profile.rows)
      for (const GalvatronRow& two : profile.rows) {
        if (one.key != two.key || one.pipeline > 1 || one.recompute || one.layers != 1 ||
            two.layers != 2 || one.sequence != two.sequence || one.batch != two.batch)
          continue;
        const auto block =
            galvatron_block(profile, one.sequence, one.tensor, one.sequence_parallel);
        if (!block) return std::nullopt;
        const Bytes kept = block->saved_bytes() * (one.batch / one.data);
        return std::pair((two.activations - one.activations) / kept, one.key);
      }
    return std::nullopt;
  }

  void score(const GalvatronProfile& profile, Scores& into, double factor,
             const std::string& without) {
    for (const GalvatronRow& row : profile.rows) {
      if (row.key == without) continue;
      const std::string name = fmt::format("{} {} l{} s{} {}", profile.file, row.key, row.layers,
                                           row.sequence, row.first ? "first" : "last");
      const Result<workload::Layout> layout = layout_of(profile, row, factor);
      if (!layout) {
        refuse(name, layout.error());
        continue;
      }
      const Assumptions assumptions = {.implementation = without.empty()
                                                             ? memory::Knowledge::kKnown
                                                             : memory::Knowledge::kMeasured,
                                       .reserve = 1,
                                       .gradients_stay = false};
      const Device device = {Bytes::gib(80), 0};
      const auto curve = memory::memory_curve(*layout, layout->stages.front(), device, assumptions);
      const StageMemory found = memory::memory_of(*layout, device, assumptions).front();
      const Bytes fixed = galvatron_fixed(profile, row);
      // The optimizer's moment has all states; the first is the end of forward.
      into.states.rows.push_back({name, exact(curve.back().parts.states() + fixed), row.states});
      const memory::Parts& forward = curve.front().parts;
      into.activations.rows.push_back(
          {name,
           exact(forward.activations + forward.loss * galvatron_kept_share_of_loss(profile.family)),
           row.activations});
      Estimate<Bytes> peak = found.peak;
      for (Bytes* b : {&peak.value, &peak.low, &peak.high}) *b += fixed;
      into.peak.rows.push_back({name, peak, row.peak});
    }
  }

  /// Peak reserved: without the context.
  /// Tables of measured peaks, as `rehearse validate` judges them.
  Status peaks() {
    if (!fs::exists(peaks_)) return {};
    const fs::path paths[] = {peaks_, kept_file("published_jobs.csv")};
    const MeasuredFiles files = TRY(measured_files(paths));
    const Result<Judgement> judged = judge(files, {});
    if (!judged) return forward(judged);
    const auto in_gib = [](double value) { return Bytes::gib(value); };
    for (const JudgedCase& each : judged->cases) {
      if (!each.name.starts_with("memory/")) continue;
      const std::string name = each.name.substr(each.name.find('/') + 1);
      MemoryCase peaks{.name = name, .about = about_peaks(name), .intervals = true};
      for (const JudgedRow& row : each.rows) {
        peaks.blind = peaks.blind && row.use == Use::kSourceLeftOut;
        peaks.rows.push_back({row.name, mapped(row.predicted, in_gib), Bytes::gib(row.measured)});
      }
      add(std::move(peaks));
    }
    for (const Skipped& each : judged->skipped)
      if (each.what == "row")
        accuracy_.refused.push_back(
            fmt::format("{}, {}: {}", each.first, counted(each.count, "row"), each.reason));
    return {};
  }

  static Result<workload::Layout> laid_out(const MeasuredJob& row) {
    const step::Spec& spec = row.job().spec;
    return strategies::lay_out(spec.workload, spec.training, spec.plan);
  }

  static Result<StageMemory> fullest_of(const MeasuredJob& row) {
    const workload::Layout layout = TRY(laid_out(row));
    const Device device = TRY(device_of(row));
    return memory::fullest(memory::memory_of(layout, device));
  }

  /// Every job that was measured did fit.
  Status jobs() {
    // The others leave recomputation open.
    for (const std::string_view name :
         {"mpt", "sc21-table1", "sc21-table2", "seqsel-table5", "torchtitan", "vtrain-multi"}) {
      FitCheck check{.name = std::string(name)};
      std::vector<double> shares;
      for (const MeasuredJob& row : jobs_) {
        if (row.table != name) continue;
        const Result<StageMemory> found = fullest_of(row);
        if (!found) {
          refuse(fmt::format("{} {}", name, row.name), found.error());
          continue;
        }
        const Bytes usable = device_of(row)->usable;
        ++check.rows;
        shares.push_back(found->peak.value / usable);
        check.fits += found->fit == memory::Fit::kFits;
        check.borderline += found->fit == memory::Fit::kBorderline;
        if (found->fit == memory::Fit::kDoesNotFit)
          check.wrong.push_back(fmt::format("{}: {:.1f} of {:.1f} GiB in {}", row.name,
                                            found->peak.value.gib(), usable.gib(), found->phase));
      }
      if (shares.empty()) continue;
      std::sort(shares.begin(), shares.end());
      check.largest_share = shares.back();
      check.median_share = shares[shares.size() / 2];
      accuracy_.fits.push_back(std::move(check));
    }
    return {};
  }

  fs::path data_;
  std::vector<MeasuredJob> jobs_ = {}, parts_ = {};
  fs::path peaks_;
  MemoryAccuracy& accuracy_;
};

}  // namespace

Result<MemoryAccuracy> measure_memory_accuracy(const fs::path& data) {
  MemoryAccuracy accuracy;
  TRY(Measurer(data, accuracy).run());
  return accuracy;
}

}  // namespace rehearse::cli
