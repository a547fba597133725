#include "profiler/capture/trigger.h"

#include <algorithm>
#include <bit>

namespace rehearse::capture {
namespace {

constexpr std::uint64_t kMostSteps = 1000000000;
constexpr std::uint64_t kMostNs = std::uint64_t{1} << 62;

class Reader {
 public:
  explicit Reader(std::string_view text) : left_(text) { skip_spaces(); }

  bool word(std::string_view word) {
    if (!left_.starts_with(word)) return false;
    left_.remove_prefix(word.size());
    skip_spaces();
    return true;
  }

  /// A decimal number with at most three digits after the point, in thousandths.
  bool thousandths(std::uint64_t& into) {
    std::uint64_t value = 0;
    if (!digits(value, 15)) return false;
    unsigned decimals = 0;
    if (left_.starts_with('.')) {
      left_.remove_prefix(1);
      const std::size_t before = left_.size();
      if (!digits(value, 3)) return false;
      decimals = static_cast<unsigned>(before - left_.size());
    }
    for (; decimals < 3; ++decimals) value *= 10;
    into = value;
    skip_spaces();
    return true;
  }

  bool done() const { return left_.empty(); }

 private:
  bool digits(std::uint64_t& value, unsigned most) {
    unsigned n = 0;
    for (; !left_.empty() && left_.front() >= '0' && left_.front() <= '9'; ++n) {
      if (n == most) return false;
      value = value * 10 + static_cast<std::uint64_t>(left_.front() - '0');
      left_.remove_prefix(1);
    }
    return n > 0;
  }
  void skip_spaces() {
    while (left_.starts_with(' ')) left_.remove_prefix(1);
  }

  std::string_view left_;
};

/// The text after "step_time >".
bool read_limit(Reader& in, Trigger& into) {
  std::uint64_t number = 0;
  if (in.word("p")) {
    into = {Trigger::Kind::kPercentile, 0};
    return in.thousandths(into.value) && into.value > 0 && into.value < 100000;
  }
  if (!in.thousandths(number) || number == 0) return false;
  if (in.word("x")) {
    into = {Trigger::Kind::kTimesMedian, number};
    return in.word("median") && number <= 1000000000;
  }
  struct Unit {
    std::string_view name;
    std::uint64_t ns;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
  for (const Unit& unit : kUnits) {
    if (!in.word(unit.name)) continue;
    std::uint64_t scaled = 0;
    if (__builtin_mul_overflow(number, unit.ns, &scaled) || scaled > kMostNs) return false;
    into = {Trigger::Kind::kLonger, scaled / 1000};
    return into.value > 0;
  }
  return false;
}

unsigned bucket_of(std::uint64_t ns) {
  constexpr unsigned kBits = std::bit_width(StepHistogram::kPerDoubling) - 1;
  const unsigned exponent = static_cast<unsigned>(std::bit_width(ns | 1)) - 1;
  const std::uint64_t fraction =
      exponent >= kBits ? ns >> (exponent - kBits) : ns << (kBits - exponent);
  return exponent * StepHistogram::kPerDoubling +
         static_cast<unsigned>(fraction & (StepHistogram::kPerDoubling - 1));
}

/// The longest time that is counted in the bucket.
std::uint64_t longest_in(unsigned bucket) {
  constexpr unsigned kBits = std::bit_width(StepHistogram::kPerDoubling) - 1;
  const unsigned exponent = bucket / StepHistogram::kPerDoubling;
  const std::uint64_t fraction = StepHistogram::kPerDoubling + bucket % StepHistogram::kPerDoubling;
  if (exponent < kBits) return fraction >> (kBits - exponent);
  const unsigned shift = exponent - kBits;
  return (fraction << shift) + ((std::uint64_t{1} << shift) - 1);
}

}  // namespace

bool parse_trigger(std::string_view text, Trigger& into) {
  Reader in(text);
  Trigger read;
  if (in.word("every")) {
    std::uint64_t number = 0;
    if (!in.thousandths(number) || number == 0 || number % 1000 != 0) return false;
    read = {Trigger::Kind::kEvery, number / 1000};
    if (read.value > kMostSteps) return false;
  } else if (!in.word("step_time") || !in.word(">") || !read_limit(in, read)) {
    return false;
  }
  if (!in.done()) return false;
  into = read;
  return true;
}

void StepHistogram::add(std::uint64_t ns) {
  ++counts_[bucket_of(ns)];
  ++count_;
}

std::uint64_t StepHistogram::quantile(std::uint64_t thousandths) const {
  // The k-th smallest with k = ceil(share * count), which is at least the first.
  const auto share = static_cast<unsigned __int128>(thousandths) * count_;
  const auto k = std::max<std::uint64_t>(1, static_cast<std::uint64_t>((share + 99999) / 100000));
  std::uint64_t seen = 0;
  for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[bucket];
    if (seen >= k) return longest_in(bucket);
  }
  return UINT64_MAX;
}

bool fires(const Trigger& trigger, const StepHistogram& before, std::uint64_t number,
           std::uint64_t ns, std::uint64_t& limit) {
  limit = 0;
  switch (trigger.kind) {
    case Trigger::Kind::kNone: return false;
    case Trigger::Kind::kEvery: return number % trigger.value == 0;
    case Trigger::Kind::kLonger: limit = trigger.value; return ns > limit;
    case Trigger::Kind::kPercentile:
      if (before.count() < kWarmUpSteps) return false;
      limit = before.quantile(trigger.value);
      return ns > limit;
    case Trigger::Kind::kTimesMedian:
      if (before.count() < kWarmUpSteps) return false;
      limit = static_cast<std::uint64_t>(static_cast<double>(before.quantile(50000)) *
                                         static_cast<double>(trigger.value) / 1000);
      return ns > limit;
  }
  return false;
}

}  // namespace rehearse::capture
