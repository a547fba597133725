#include "profiler/launch/chosen_steps.h"

#include <algorithm>

namespace rehearse::capture {

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

}  // namespace rehearse::capture
