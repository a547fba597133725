#include "profiler/launch/session.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "profiler/capture/format.h"
#include "sim/base/file.h"
#include "sim/base/text.h"

namespace rehearse::capture {

namespace {

namespace fs = std::filesystem;

/// Counts what one capture holds.
class Counter {
 public:
  explicit Counter(LaunchedProcess& process) : process_(process) {}

  void count(const Block& block) {
    steps_.read(block);
    switch (block.type) {
      case BlockType::kTexts:
        if (const auto texts = decode_texts(block.payload))
          for (const NumberedText& text : *texts) keep(text);
        break;
      case BlockType::kLoss:
        process_.counts.lost = decode_loss(block.payload).value_or(process_.counts.lost);
        break;
      case BlockType::kTrailer:
        if (const auto trailer = decode_trailer(block.payload)) {
          process_.counts.lost = trailer->lost;
          process_.ended = true;
        }
        break;
      case BlockType::kRows:
        if (decode_rows(block.payload, rows_)) count_rows();
        break;
      case BlockType::kRecords:
        if (decode_records(block.payload, records_)) count_records();
        break;
      default: break;
    }
  }

  const ChosenSteps& steps() const { return steps_.steps(); }

 private:
  // Programs may name millions of ranges; the library notes its facts among the first texts.
  static constexpr std::size_t kKeptTexts = 65536;

  void keep(const NumberedText& text) {
    if (texts_.size() < kKeptTexts) texts_[text.number] = text.text;
  }

  void count_rows() {
    process_.recorded = true;
    for (const Row& row : rows_.rows) {
      process_.counts.ranges += row.kind == RowKind::kRange || row.kind == RowKind::kStart;
      process_.counts.marks += row.kind == RowKind::kMark;
    }
  }

  void count_records() {
    const std::uint64_t n = records_.count;
    switch (records_.table) {
      case TableId::kKernel: process_.counts.kernels += n; break;
      case TableId::kCopy:
      case TableId::kSet: process_.counts.copies += n; break;
      case TableId::kCall: process_.counts.calls += n; break;
      case TableId::kGraphLaunch: process_.counts.graphs += n; break;
      case TableId::kCollective: process_.counts.collectives += n; break;
      case TableId::kFact: count_facts(); return;
      case TableId::kKeptStep: return;
      case TableId::kPower:  // belongs to the boards, not to the process
        return;
      default: break;
    }
    process_.recorded = true;
    process_.device = process_.device || records_.table != TableId::kCollective;
  }

  void count_facts() {
    for (std::size_t i = 0; i < records_.count; ++i) {
      const auto fact = records_.at<FactRecord>(i);
      const auto key = texts_.find(fact.key), value = texts_.find(fact.value);
      if (key == texts_.end()) continue;
      process_.device = process_.device || key->second == "driver.cuda";
      process_.facts.emplace_back(key->second, value == texts_.end() ? "" : value->second);
    }
  }

  LaunchedProcess& process_;
  ChosenStepsReader steps_;
  std::map<std::uint64_t, std::string> texts_;
  RowsBlock rows_;
  RecordsBlock records_;
};

void count(const fs::path& capture, LaunchedProcess& process) {
  std::ifstream file(capture, std::ios::binary);
  BlockReader blocks([&](std::span<char> into) {
    file.read(into.data(), static_cast<std::streamsize>(into.size()));
    return static_cast<std::size_t>(file.gcount());
  });
  if (blocks.begin() != BlockReader::Begin::kCapture) return;
  Counter counter(process);
  while (const auto block = blocks.next()) counter.count(*block);
  process.steps = counter.steps();
}

}  // namespace

void ChosenStepsReader::read(const Block& block) {
  if (block.type == BlockType::kSteps) steps_.counts = decode_steps(block.payload);
  // The text of a reason comes directly before its record.
  if (block.type == BlockType::kTexts) {
    texts_.clear();
    if (const auto numbered = decode_texts(block.payload))
      for (const NumberedText& text : *numbered) texts_.insert_or_assign(text.number, text.text);
  }
  if (block.type != BlockType::kRecords || !decode_records(block.payload, records_) ||
      records_.table != TableId::kKeptStep)
    return;
  for (std::size_t i = 0; i < records_.count; ++i) {
    const auto record = records_.at<KeptStepRecord>(i);
    const auto text = texts_.find(record.reason);
    const auto took =
        std::max<std::int64_t>(static_cast<std::int64_t>(record.end - record.start), 0);
    const double recorded = static_cast<double>(record.recorded);
    steps_.kept.push_back(
        {.number = record.step,
         .reason = text == texts_.end() ? "?" : text->second,
         .time = Seconds::ns(static_cast<double>(took)),
         .share = record.recorded == 0 ? 0 : static_cast<double>(record.kept) / recorded,
         .neighbour = record.cause == 3});
  }
}

void add_counts(std::optional<StepCounts>& all, const std::optional<StepCounts>& one) {
  if (!one) return;
  if (!all) all = StepCounts{};
  all->seen += one->seen;
  all->kept += one->kept;
  all->in_part += one->in_part;
  all->gone += one->gone;
  all->rows += one->rows;
}

Counts& Counts::operator+=(const Counts& other) {
  ranges += other.ranges;
  marks += other.marks;
  kernels += other.kernels;
  copies += other.copies;
  calls += other.calls;
  graphs += other.graphs;
  collectives += other.collectives;
  lost += other.lost;
  return *this;
}

std::vector<LaunchedProcess> processes_in(const fs::path& folder) {
  std::vector<LaunchedProcess> processes;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != kHelloSuffix) continue;
    LaunchedProcess process{.name = entry.path().stem().string(),
                            .command = std::string(trim(read_file(entry.path()).value_or("")))};
    const fs::path capture = fs::path(entry.path()).replace_extension(kCaptureSuffix);
    const std::uintmax_t bytes = fs::file_size(capture, ignored);
    if (!ignored) process.bytes = bytes;
    count(capture, process);
    processes.push_back(std::move(process));
  }
  std::ranges::sort(processes, [](const auto& a, const auto& b) { return a.name < b.name; });
  return processes;
}

}  // namespace rehearse::capture
