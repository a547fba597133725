#include "cli/report/timeline_sheet.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "cli/output/table.h"
#include "sim/base/check.h"

namespace rehearse::cli {
namespace {

constexpr std::size_t kMostBytes = 1'400'000;  // of packed spans and their names
constexpr std::size_t kLongestName = 160;

std::int64_t ns(Seconds s) { return std::llround(s.s() * 1e9); }

void put(std::string& out, std::uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= bytes.size() - i ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// The spans of a lane that are shown, and their packed form.
struct Shown {
  std::vector<const TimelineSpan*> spans;  // in the order of start
};

class LanePacker {
 public:
  LanePacker(const graph::Timeline& timeline, const std::vector<graph::PathStep>& path)
      : timeline_(timeline),
        number_(timeline.ops.size(), 0),
        critical_(timeline.ops.size(), false) {
    for (const graph::PathStep& step : path) critical_[step.op.index()] = true;
  }

  std::string pack(const std::vector<Shown>& lanes) {
    std::size_t next = 1;
    for (const Shown& lane : lanes)
      for (const TimelineSpan* span : lane.spans) {
        if (span->op) number_[span->op->index()] = next;
        ++next;
      }
    next = 1;
    std::string out;
    for (const Shown& lane : lanes) {
      std::int64_t before = 0;
      for (const TimelineSpan* span : lane.spans) {
        const std::int64_t start = ns(span->start);
        put(out, static_cast<std::uint64_t>(start - before));
        // From rounded end to rounded start, so that neighbours do not overlap.
        const std::int64_t end = ns(span->start + span->duration);
        put(out, static_cast<std::uint64_t>(std::max<std::int64_t>(0, end - start)));
        const bool critical = span->op && critical_[span->op->index()];
        put(out, 32 * name_of(span->name) + 2 * static_cast<std::uint64_t>(span->category) +
                     (critical ? 1 : 0));
        const std::size_t cause = cause_of(*span);
        put(out, cause == 0 ? 0
                            : 1 + zigzag(static_cast<std::int64_t>(cause) -
                                         static_cast<std::int64_t>(next)));
        before = start;
        ++next;
      }
    }
    return out;
  }
  const Json& names() const { return names_; }
  std::size_t bytes_of_names() const { return bytes_of_names_; }

 private:
  std::uint64_t name_of(std::string_view name) {
    const auto [known, fresh] = index_.try_emplace(name, index_.size());
    if (fresh) {
      std::string shown = shortened(name, kLongestName);
      bytes_of_names_ += shown.size() + 3;
      names_.push_back(std::move(shown));
    }
    return known->second;
  }

  /// The number of the nearest span that led to this one; ops without a span are passed over.
  std::size_t cause_of(const TimelineSpan& span) const {
    if (!span.op) return 0;
    std::optional<OpId> cause = timeline_[*span.op].cause;
    for (std::size_t passed = 0; cause && passed < 10'000; ++passed) {
      if (number_[cause->index()] != 0) return number_[cause->index()];
      cause = timeline_[*cause].cause;
    }
    return 0;
  }

  const graph::Timeline& timeline_;
  std::vector<std::size_t> number_;  // of the span of an op, from 1
  std::vector<bool> critical_;
  std::unordered_map<std::string_view, std::uint64_t> index_;
  Json names_ = Json::array();
  std::size_t bytes_of_names_ = 0;
};

}  // namespace

void TimelineSheet::process(std::size_t process, std::string_view name) {
  processes_.push_back({process, std::string(name)});
}

void TimelineSheet::thread(std::size_t process, std::size_t thread, std::string_view name) {
  lane_of_[{process, thread}] = lanes_.size();
  lanes_.push_back({process, thread, std::string(name)});
}

void TimelineSheet::span(const TimelineSpan& span) {
  const auto lane = lane_of_.find({span.process, span.thread});
  REHEARSE_CHECK(lane != lane_of_.end(), "a span on thread {} of process {}, which has no name",
                 span.thread, span.process);
  lanes_[lane->second].spans.push_back(span);
}

Json TimelineSheet::json(const graph::Timeline& timeline, const std::vector<graph::PathStep>& path,
                         std::size_t most_spans) const {
  // Lanes by process, in order of first appearance.
  std::map<std::size_t, std::size_t> place;
  for (std::size_t p = 0; p < processes_.size(); ++p) place.emplace(processes_[p].number, p);
  std::vector<const Lane*> in_order;
  for (const Lane& lane : lanes_) in_order.push_back(&lane);
  std::stable_sort(in_order.begin(), in_order.end(), [&](const Lane* a, const Lane* b) {
    return place.at(a->process) < place.at(b->process);
  });
  struct Placed {
    const TimelineSpan* span;
    std::size_t lane;  // in_order
  };
  std::vector<Placed> longest;
  Seconds first = Seconds::s(0), end = Seconds::s(0);
  for (std::size_t lane = 0; lane < in_order.size(); ++lane)
    for (const TimelineSpan& span : in_order[lane]->spans) {
      if (longest.empty() || span.start < first) first = span.start;
      end = std::max(end, span.start + span.duration);
      longest.push_back({&span, lane});
    }
  if (longest.empty()) return {};
  const std::size_t all = longest.size();
  // The longest first; of equally long ones, those of earlier lanes.
  const auto before = [](const Placed& a, const Placed& b) {
    if (a.span->duration != b.span->duration) return a.span->duration > b.span->duration;
    return a.lane != b.lane ? a.lane < b.lane : a.span < b.span;
  };
  std::size_t most = std::min(most_spans, all);
  std::nth_element(longest.begin(), longest.begin() + static_cast<std::ptrdiff_t>(most - 1),
                   longest.end(), before);
  longest.resize(most, {nullptr, 0});
  std::sort(longest.begin(), longest.end(), before);
  for (;;) {
    std::vector<Shown> shown(in_order.size());
    for (std::size_t i = 0; i < most; ++i) shown[longest[i].lane].spans.push_back(longest[i].span);
    Json lanes = Json::array();
    std::size_t bytes = 0;
    for (std::size_t l = 0; l < shown.size(); ++l) {
      std::vector<const TimelineSpan*>& spans = shown[l].spans;
      if (spans.empty()) continue;
      // Outer before inner, as they nest.
      std::sort(spans.begin(), spans.end(), [](const TimelineSpan* a, const TimelineSpan* b) {
        if (ns(a->start) != ns(b->start)) return ns(a->start) < ns(b->start);
        return a->duration != b->duration ? a->duration > b->duration : a < b;
      });
      const std::string& process = processes_[place.at(in_order[l]->process)].name;
      bytes += process.size() + in_order[l]->name.size() + 40;  // with its keys
      lanes.push_back({{"process", process}, {"name", in_order[l]->name}, {"spans", spans.size()}});
    }
    LanePacker packer(timeline, path);
    const std::string packed = base64(packer.pack(shown));
    bytes += packed.size() + packer.bytes_of_names();
    if (bytes > kMostBytes && most > 1) {
      most = std::max<std::size_t>(1, std::min(most * 19 / 20, most * kMostBytes / bytes));
      continue;
    }
    Json json = {
        {"start_s", first.s()},    {"end_s", end.s()},          {"spans", most},
        {"left_out", all - most},  {"lanes", std::move(lanes)}, {"categories", Json::array()},
        {"names", packer.names()}, {"packed", packed}};
    if (most < all) json["shortest_s"] = longest[most - 1].span->duration.s();
    for (const std::string_view category : graph::kCategoryNames)
      json["categories"].push_back(category);
    return json;
  }
}

}  // namespace rehearse::cli
