// TimelineSheet: a timeline as the page of the report draws it: lanes of spans, each with the span
// it waited for, packed so that a hundred thousand of them take about a megabyte.
//
//   TimelineSheet sheet;
//   show_job(job, lowered, timeline, sheet);
//   details.timeline = sheet.json(timeline, critical_path);
//
// Packed: per lane spans in the order of start; of each, as variable-length integers of seven bits
// a byte, the lowest first: nanoseconds since the start of the one before, nanoseconds it takes,
// its name and category as 32 · name + 2 · category + (on the critical path), and what it waited
// for: 0 nothing, else 1 + zigzag(its number - the own number). Spans are numbered through.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/timeline_sink.h"
#include "cli/output/value.h"
#include "sim/graph/critical_path.h"
#include "sim/graph/timeline.h"

namespace rehearse::cli {

class TimelineSheet : public TimelineSink {
 public:
  void process(std::size_t process, std::string_view name) override;
  void thread(std::size_t process, std::size_t thread, std::string_view name) override;
  void span(const TimelineSpan& span) override;

  /// `timeline` is the run that spans with an op belong to; `path` is its critical path. Above
  /// `most_spans`, and above the size limit of the page, the shortest spans are left out; the
  /// result says how many, and how short they are. Null without spans.
  Json json(const graph::Timeline& timeline, const std::vector<graph::PathStep>& path,
            std::size_t most_spans = 100'000) const;

 private:
  struct Lane {
    std::size_t process;
    std::size_t thread;
    std::string name;
    std::vector<TimelineSpan> spans = {};
  };
  struct Process {
    std::size_t number;
    std::string name;
  };
  std::vector<Process> processes_;
  std::vector<Lane> lanes_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> lane_of_;  ///< by process and thread
};

}  // namespace rehearse::cli
