// Runs the benchmarks and, after Google Benchmark's own table, prints the ratios that
// docs/performance.md quotes.
#include <map>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

namespace {

/// Remembers the items per second of each benchmark. It takes the best repetition, because other
/// work of the machine can only slow it down.
class RatioReporter final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
      const auto found = run.counters.find("items_per_second");
      if (found != run.counters.end()) {
        double& best = rate_[run.run_name.function_name +
                             (run.run_name.args.empty() ? "" : "/" + run.run_name.args)];
        best = std::max(best, found->second.value);
      }
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void print_ratios() const {
    fmt::print("\n| what | against | ratio |\n|---|---|---|\n");
    row("engine/64_streams/1000000", "reference/simgrid/64_streams/1000000");
    row("engine/64_streams/100000", "reference/simgrid/64_streams/100000");
    for (const int ranks : {64, 256, 1024})
      row(fmt::format("ring/native/ranks/{}", ranks), fmt::format("ring/simgrid/ranks/{}", ranks));
    for (const char* policy : {"fifo", "backfill"})
      row(fmt::format("fleet/{}/800/160", policy), fmt::format("fleet/plain_{}/800/160", policy));
    row("engine/64_streams/1000000", "reference/memory_copy_of_1M_ops");
    row("engine/64_streams/1000000", "engine/64_streams/1000", " per op");
    row("sharing/flows/classes/100000/10", "sharing/flows/classes/1000/10", " per flow");
    row("engine/1M_ops/streams/4096", "engine/1M_ops/streams/8", " per op");
    row("engine/long_queues/ops/priority/1000000/1", "engine/long_queues/ops/priority/1000000/0");
    row("sharing/flows/classes/10000/100", "sharing/flows/classes/10000/10", " per flow");
    for (const char* how : {"3072/closed", "3072/messages", "16384/closed", "16384/messages"})
      row(fmt::format("gpt_175b/{}", how), "engine/64_streams/1000000", " per op");
    row("import/json_to_store", "reference/python_json_load");
    row("import/json_to_store", "reference/simdjson_tokens");
    row("import/json_to_store", "import/json_to_memory");
    row("import/store_rows", "reference/one_insert_per_row");
    for (const char* where : {"ring", "file"})
      row(fmt::format("capture/encode_to_{}", where), "reference/memory_copy_of_rows");
    row("capture/encode_to_ring", "capture/encode_to_file");
    for (const char* policy : {"fifo", "backfill", "shortest", "fair", "preempt", "slices"}) {
      const std::string name = fmt::format("fleet/{}/", policy);
      row(name + "5000/1000", "fleet/sort_events/5000", " per job");
      row(name + "40000/1000", name + "5000/1000", " per job");
      row(name + "5000/8000", name + "5000/1000", " per job");
      row(name + "40000/8000", name + "40000/1000", " per job");
    }
    row("plans/evaluate", "plans/evaluate_alone");
    row("plans/bound", "plans/evaluate");
    row("plans/search/1024/1", "plans/evaluate", " per plan seen");
    row("store/lru", "store/pass", " per access");
    row("store/lru", "store/list and table");
    row("store/belady", "store/pass", " per access");
    row("store/belady", "store/list and table");
    row("replay/lower/ranks/4", "replay/lower/ranks/1", " per op");
    row("replay/run/ranks/4", "replay/run/ranks/1", " per op");
  }

 private:
  /// A ratio is never below one: "3 times as fast", or "takes 3 times as long".
  void row(const std::string& what, const std::string& against, const char* per = "") const {
    const auto a = rate_.find(what), b = rate_.find(against);
    if (a == rate_.end() || b == rate_.end()) return;
    const double ratio = a->second / b->second;
    if (ratio >= 1)
      fmt::print("| {} | {} | {:.3g} times as fast{} |\n", what, against, ratio, per);
    else
      fmt::print("| {} | {} | takes {:.3g} times as long{} |\n", what, against, 1 / ratio, per);
  }

  std::map<std::string, double> rate_;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  reporter.print_ratios();
  return 0;
}
