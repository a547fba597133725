// Spans: intervals of time in order, merged if they touch or overlap.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/time.h"

namespace rehearse {

struct Span {
  Picoseconds begin, end;
};

class Spans {
 public:
  /// Empty spans are left out.
  explicit Spans(std::vector<Span> spans) {
    std::erase_if(spans, [](const Span& span) { return span.end <= span.begin; });
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.begin < b.begin; });
    for (const Span& span : spans) {
      if (joined_.empty() || joined_.back().end < span.begin)
        joined_.push_back(span);
      else
        joined_.back().end = std::max(joined_.back().end, span.end);
    }
  }

  const std::vector<Span>& joined() const { return joined_; }

  /// The part of [begin, end) that the spans cover.
  Picoseconds within(Picoseconds begin, Picoseconds end) const {
    Picoseconds sum(0);
    for (auto span = std::partition_point(joined_.begin(), joined_.end(),
                                          [&](const Span& s) { return s.end <= begin; });
         span != joined_.end() && span->begin < end; ++span)
      sum += std::min(end, span->end) - std::max(begin, span->begin);
    return sum;
  }

 private:
  std::vector<Span> joined_;
};

}  // namespace rehearse
